"""Encodings that nothing declares: recognised by their letters, or said to be unknown; never read as another text."""

import random
from contextlib import suppress

import pytest

from rye.workspace import encoding_guess

# Prose, a comment in code, a configuration file, messages: as files in these languages have them.
SAMPLES = {
    "cp1252 iso8859-1": (
        "Les élèves français étaient déjà à l'école près de la forêt.\nIls y étudiaient l'été comme l'hiver.\n",
        "# Vérifie si le répertoire existe déjà avant de créer le fichier\ndef vérifier():\n    pass  # à compléter\n",
        "Die Straße führte über die Brücke zum Gasthaus, wo schöne Gärten für Gäste geöffnet waren.\n",
        "/* Müller: prüft, ob der Schlüssel gültig ist */\nint x; /* Größe in Bytes, für später */\n",
        "El niño comió una manzana después de la reunión. ¿Qué pasó mañana? ¡Todavía no lo sé!\n",
        "# Función que devuelve el número de páginas según el tamaño\n# Atención: la codificación es así\n",
        "Configuración guardada. Contraseña inválida. Sesión cerrada por inactividad.\n",
        "// Função que calcula a média das avaliações; não é possível usar números negativos\n",
        "Perché la città è così bella? Può darsi che sia la luce, o la qualità dell'aria di lunedì.\n",
    ),
    "cp1252": (
        "På måndag åker vi till Göteborg för att hälsa på våra vänner på en ö nära staden.\n",
        "Børnene går på skole på øen, og lærerne må også køre dertil hver dag, når det blæser på søen.\n",
        "Það er gott að búa á Íslandi þótt veðrið sé oft kalt og dimmt á veturna. Sjáðu fjöllin úti við hafið.\n",
        "Älä syö keltaista lunta, sillä se ei ole hyvää. Tämä pätee myös järven jäällä.\n",
    ),
    "cp1250 iso8859-2": (
        "Zażółć gęślą jaźń. Książka leży na półce, a dzieci śpią już w łóżkach; jutro będą się uczyć.\n",
        "# Sprawdź, czy użytkownik może zapisać zmiany w pliku, zanim się wyloguje. Błąd wejścia/wyjścia.\n",
        "Az öreg halász fölött gyűlő felhők esőt hoztak; ő azonban tudta, hogy a tűz nem alszik ki, míg él.\n",
    ),
    "cp1254": ("Çocuklar bahçede oynuyor, çünkü bugün hava güneşli ve ılık. Işığı kapatmayı unutma, lütfen.\n",),
    "cp1257": (
        "Lietuvių kalba yra viena seniausių gyvų kalbų. Vaikai eina į mokyklą, nes šiandien pirmoji mokslo metų diena.\n",
    ),
    "cp1251 koi8-r": (
        "Все счастливые семьи похожи друг на друга, каждая несчастливая семья несчастлива по-своему.\n",
        "# Проверить, существует ли каталог, и создать файл настроек\nx = 1  # временно, исправить позже\n",
    ),
    "cp1251 koi8-u": ("Перевірте, чи існує каталог, і створіть файл налаштувань. Її книжка лежить на столі біля вікна.\n",),
    "cp1251": ("Всички хора се раждат свободни и равни по достойнство и права. Проверете дали файлът съществува.\n",),
    "cp1253 iso8859-7": ("Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα.\n",),
    "shift_jis euc_jp": (
        "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。\n",
        "エラー: ファイルが見つかりません。\nユーザー名とパスワードを入力してください。\n",
    ),
    "gb18030 gb2312 gbk": ("人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。\n",),
    "big5": ("人人生而自由，在尊嚴和權利上一律平等。他們賦有理性和良心，並應以兄弟關係的精神相對待。\n",),
    "euc_kr": ("모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.\n",),
}
# Of languages and encodings that the tables do not have.
STRANGE = [
    ("cp1255", "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם. כולם חוננו בתבונה ובמצפון.\n"),
    ("cp1256", "يولد جميع الناس أحرارا متساوين في الكرامة والحقوق وقد وهبوا عقلا وضميرا.\n"),
    ("cp874", "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ\n"),
    ("mac_roman", "Le café où l'été passé nous avons dîné. Ça dépend du maître d'hôtel, naturellement.\n"),
    ("cp850", "Die Straße führte über die Brücke zum Gasthaus, wo schöne Gärten für Gäste geöffnet waren.\n"),
    ("cp437", "┌────────┐\n│ héllo  │\n└────────┘\n"),
]


def guess(data):
    """The first candidate that decodes all of it, as `encoding.detect` takes it."""
    for name in encoding_guess.guess(data):
        with suppress(UnicodeError):
            data.decode(name)
            return name
    return None


CASES = [(codec, text) for codecs, texts in SAMPLES.items() for text in texts for codec in codecs.split()]


@pytest.mark.parametrize(("codec", "text"), CASES)
def test_no_text_is_read_as_another(codec, text):
    data = text.encode(codec)
    found = guess(data)
    assert found is None or data.decode(found) == text, (codec, found, data.decode(found))


def test_nearly_all_are_recognised():
    missed = [(codec, text[:30]) for codec, text in CASES if guess(text.encode(codec)) is None]
    print(f"{len(CASES) - len(missed)} of {len(CASES)} recognised; unknown: {missed}")
    assert len(missed) <= len(CASES) // 20, missed
    # Of a long line the beginning counts, wherever its cut falls in a letter.
    long = ("xこれは日本語の文章です。今日は天気がいいので散歩に行きます。" * 9_000).encode("euc_jp")
    assert (guess(long), len(encoding_guess._sample(long)) < 70_000) == ("euc_jp", True)


@pytest.mark.parametrize(("codec", "text"), STRANGE)
def test_what_the_tables_do_not_have_is_unknown(codec, text):
    assert guess(text.encode(codec)) is None


def test_too_little_nonsense_and_random_bytes_are_unknown():
    chance = random.Random(7)  # as in a data file that has no NUL
    noise = [bytes(chance.randrange(1, 256) for _ in range(400)) for _ in range(200)]
    for data in (b"", b"plain\n", b"caf\xe9\n", bytes(range(1, 256)), b"\xff\xfe\xfd\xfc" * 20, *noise):
        assert guess(data) is None, data
