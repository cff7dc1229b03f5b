"""Small PDFs that tests write themselves: pages of text, and what is damaged or hostile."""

import random
import zlib

SIZE = 10
WIDE = 0.6 * SIZE  # of each letter of Courier
LEFT, RIGHT = 72, 480
PROSE = "the ferry leaves the quay before the tide turns, and every crate is"


def pdf_of(objects, trailer=""):
    """Return a PDF of some objects, of which the first is its catalog."""
    data, places = b"%PDF-1.7\n", []
    for number, one in enumerate(objects, start=1):
        places.append(len(data))
        body = one if isinstance(one, bytes) else one.encode("latin1")
        data += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(data)
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    data += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}".encode()
    data += f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R {trailer} >>\n".encode()
    return data + f"startxref\n{start}\n%%EOF\n".encode()


def stream(text, more=""):
    """Return a stream with its length."""
    data = text if isinstance(text, bytes) else text.encode("latin1")
    return f"<< /Length {len(data)} {more} >>\nstream\n".encode() + data + b"\nendstream"


def pages_of(contents, box="0 0 612 792", trailer="", more=""):
    """Return a PDF whose pages have some contents, each a stream of operators."""
    kids = " ".join(f"{4 + 2 * k} 0 R" for k in range(len(contents)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Count {len(contents)} /Kids [{kids}] >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Courier >>",
    ]
    for k, content in enumerate(contents):
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [{box}] {more} /Contents {5 + 2 * k} 0 R "
            "/Resources << /Font << /F 3 0 R >> >> >>",
            content if isinstance(content, bytes) else stream(content),
        ]
    return pdf_of(objects, trailer)


def chapter(numbers, first=(), per_page=5):
    """Return a PDF of a made-up chapter with a formula for each number, and citations of each."""
    contents = []
    for at in range(0, len(numbers), per_page):
        y, lines = 740, []

        def write(x, text, y, lines=lines):
            lines.append(f"BT /F {SIZE} Tf {x:.2f} {y} Td ({text}) Tj ET")

        def escaped(text):
            return text.replace("(", r"\(").replace(")", r"\)")

        if not at:
            for words in first:
                write(LEFT, escaped(words), y)
                y -= 14
        for number in numbers[at : at + per_page]:
            for k in range(4):
                write(LEFT, escaped(f"{PROSE}, as ({number}) says"[-67:] if k == 1 else PROSE), y)
                y -= 12
            y -= 10
            write(200, "y = f\\(x\\) + b", y)
            write(RIGHT - WIDE * (len(number) + 2), escaped(f"({number})"), y)
            y -= 26
        contents.append("\n".join(lines))
    return pages_of(contents)


def encrypted():
    """Return a PDF that asks for a password."""
    words = "<" + "41" * 32 + ">"
    how = f"<< /Filter /Standard /V 1 /R 2 /O {words} /U {words} /P -4 >>"
    return pages_of(["BT ET"], trailer=f"/Encrypt {how} /ID [{words} {words}]")


def hostile():
    """Return PDFs by name that are damaged, or made to take memory or time."""
    good = chapter([f"8.{k}" for k in range(6, 30)])
    zeros = zlib.compress(bytes(200_000_000), 9)
    flate = "/Filter /FlateDecode"
    nested = b"q " * 200_000
    found = {
        "nothing": b"%PDF-1.7\n",
        "noise": b"%PDF-1.7\n" + random.Random(1).randbytes(50_000),
        "no pages": pdf_of(["<< /Type /Catalog >>"]),
        "pages of pages": pdf_of(
            ["<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Count 9 /Kids [2 0 R] >>"]
        ),
        "a million pages": pdf_of(
            ["<< /Type /Catalog /Pages 2 0 R >>",
             "<< /Type /Pages /Count 1000000 /Kids [3 0 R] >>",
             "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] >>"]
        ),
        "a page without end": pages_of(["BT ET"], box="0 0 1e30 1e30"),
        "a page without size": pages_of(["BT ET"], box="0 0 0 0"),
        "a bomb": pages_of([stream(zeros, flate)]),
        "a bomb in a bomb": pages_of(
            [stream(zlib.compress(zeros, 9), "/Filter [/FlateDecode /FlateDecode]")]
        ),
        "states that are never left": pages_of([nested]),
        "a path of a million lines": pages_of(
            ["0 0 m " + " ".join(f"{k % 600} {k % 790} l" for k in range(1_000_000)) + " S"]
        ),
        "a million letters": pages_of(
            [f"BT /F 9 Tf 1 0 0 1 9 9 Tm {'(a) Tj 0 0 Td ' * 1_000_000} ET"]
        ),
        "a million numbers": pages_of(
            ["BT /F 9 Tf " + "".join(
                f"1 0 0 1 {k % 500} {k % 700} Tm (\\(8.{k % 99}\\)) Tj " for k in range(100_000)
            ) + "ET"]
        ),
        "arrays in arrays": pdf_of(["<< /Type /Catalog /Pages 2 0 R /X " + "[" * 100_000 + " >>"]),
        "dictionaries in dictionaries": pdf_of(["<< /A " * 50_000]),
        "a form that draws itself": pdf_of(
            ["<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Count 1 /Kids [3 0 R] >>",
             "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
             "/Resources << /XObject << /X 5 0 R >> >> >>",
             stream("/X Do " * 100),
             stream("/X Do " * 100, "/Type /XObject /Subtype /Form /BBox [0 0 9 9] "
                    "/Resources << /XObject << /X 5 0 R >> >>")]
        ),
        "a picture of a billion points": pdf_of(
            ["<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Count 1 /Kids [3 0 R] >>",
             "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
             "/Resources << /XObject << /X 5 0 R >> >> >>",
             stream("600 0 0 700 0 0 cm /X Do"),
             stream(zeros, f"{flate} /Type /XObject /Subtype /Image /Width 30000 /Height 30000 "
                    "/ColorSpace /DeviceRGB /BitsPerComponent 8")]
        ),
        "a script": pdf_of(
            ["<< /Type /Catalog /Pages 2 0 R "
             "/OpenAction << /S /JavaScript /JS (app.alert\\(1\\)) >> >>",
             "<< /Type /Pages /Count 1 /Kids [3 0 R] >>",
             "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Annots [<< /Type /Annot "
             "/Subtype /Link /Rect [0 0 612 792] "
             "/A << /S /URI /URI (javascript:window.hit=1) >> >>] >>"]
        ),
        "an address elsewhere": pdf_of(
            ["<< /Type /Catalog /Pages 2 0 R "
             "/OpenAction << /S /URI /URI (http://elsewhere.test/) >> >>",
             "<< /Type /Pages /Count 1 /Kids [3 0 R] >>",
             "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] >>"]
        ),
    }  # fmt: skip
    draw = random.Random(7)
    for k in range(50 - len(found)):
        data = bytearray(good)
        if k % 3 == 0:
            data = data[: draw.randrange(200, len(data))]
        for _ in range(draw.choice((1, 10, 100, 1000))):
            data[draw.randrange(9, len(data))] = draw.randrange(256)
        found[f"damage {k + 1}"] = bytes(data)
    return found
