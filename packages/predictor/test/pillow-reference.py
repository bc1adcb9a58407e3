"""Images of every kind into a folder, and what Pillow makes of each: hashes as JSON on stdout.

Files that are in the folder already are told about too. Argument: the folder.
"""

import hashlib
import json
import os
import random
import struct
import sys

from PIL import Image, ImageFilter, ImageOps

folder = sys.argv[1]
dice = random.Random(20261122)
channels = {"L": 1, "LA": 2, "RGB": 3, "RGBA": 4, "CMYK": 4}
sizes = [(1, 1), (2, 1), (1, 3), (7, 5), (31, 57), (113, 224), (224, 224), (224, 90), (225, 223)]
sizes += [(256, 256), (300, 200), (640, 480), (3, 900), (1200, 2), (449, 447), (17, 230)]


def noise(mode, width, height):
    data = dice.randbytes(width * height * channels[mode])
    image = Image.frombytes(mode, (width, height), data)
    # Half of them smooth, as photographs are.
    return image.filter(ImageFilter.GaussianBlur(2)) if dice.random() < 0.5 else image


def keep(image, name, **options):
    image.save(os.path.join(folder, name), **options)


def write():
    for width, height in sizes:
        name = f"{width}x{height}"
        keep(noise("RGB", width, height), f"{name}.jpg", quality=92)
        keep(noise("RGB", width, height), f"{name}-444.jpg", quality=70, subsampling=0)
        keep(noise("RGB", width, height), f"{name}-422.jpg", quality=80, subsampling=1)
        keep(noise("RGB", width, height), f"{name}-progressive.jpg", progressive=True)
        keep(noise("L", width, height), f"{name}-gray.jpg")
        keep(noise("CMYK", width, height), f"{name}-cmyk.jpg")
        for mode in ["L", "LA", "RGB", "RGBA"]:
            keep(noise(mode, width, height), f"{name}-{mode}.png")
        palette = noise("RGB", width, height).quantize(16)
        keep(palette, f"{name}-palette.png")
        keep(palette, f"{name}-palette-transparent.png", transparency=0)
        keep(noise("L", width, height).convert("1"), f"{name}-bits.png")
    deep = Image.frombytes("I;16", (90, 70), dice.randbytes(90 * 70 * 2))
    keep(deep, "deep-gray.png")
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        keep(noise("RGB", 60, 40), f"exif-{orientation}.jpg", exif=exif)
    keep(Image.new("RGB", (4000, 3000), (3, 90, 30)).effect_spread(40), "photo-flat.png")
    photo = Image.effect_noise((4000, 3000), 60)
    keep(Image.merge("RGB", [photo, photo.transpose(0), photo.transpose(1)]), "photo.jpg")
    keep(photo, "photo-gray.jpg", progressive=True)


def rgb_of(image):
    if not image.mode.startswith("I"):
        return image.convert("RGB")
    # 16 bits of gray: Pillow clips at 255, we keep the upper eight.
    data = image.convert("I").tobytes()
    high = bytes(value >> 8 for value in struct.unpack(f"<{len(data) // 4}i", data))
    return Image.frombytes("L", image.size, high).convert("RGB")


def digest(image):
    return hashlib.sha256(image.tobytes()).hexdigest()


def told(name):
    image = Image.open(os.path.join(folder, name))
    rgb = rgb_of(image)
    turned = ImageOps.exif_transpose(image)
    small = {
        kind: digest(rgb.resize((224, 224), getattr(Image.Resampling, kind.upper())))
        for kind in ["bicubic", "bilinear", "nearest"]
    }
    return {"name": name, "rgb": digest(rgb), "turned": digest(rgb_of(turned)), **small}


write()
print(json.dumps([told(name) for name in sorted(os.listdir(folder))]))
