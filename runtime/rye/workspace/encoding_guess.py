"""A guess at the encoding of text that is neither UTF-8 nor marked: by the letters of the languages that it is used for.

A candidate must decode every byte. Then it is scored by how well its characters fit a language: the letters beyond ASCII must
belong to one alphabet, be beside letters of the same script, and be as frequent as they are in that language. Of East Asian
encodings the share of everyday characters counts. Where the best candidates read different texts and score alike, there is no
guess. The tables are small: what is not in them (Hebrew, Arabic, Thai, the encodings of DOS) counts as unknown.
"""

from __future__ import annotations

import codecs
import math
import re
from collections import Counter
from typing import NamedTuple

_SAMPLE = 65_536
# With fewer bytes beyond ASCII nothing can be said.
_FEWEST = 3
_FEWEST_WIDE = 5
_ENOUGH = 0.62
# A rival that reads another text must be so much worse.
_MARGIN = 0.08

# The letters beyond ASCII of each language, in lower case, the frequent ones first.
_LATIN = {
    "cp1252": {
        "French": "éèàêçùâîôûëïœæüÿ",
        "German": "üäößé",
        "Spanish": "óáíéñúü",
        "Portuguese": "ãçéáóíõêúâôàü",
        "Italian": "èàòùéìîó",
        "Dutch": "ëéïèöüê",
        "Swedish": "äåöéà",
        "Danish and Norwegian": "øåæéèòóôü",
        "Finnish": "äöåšž",
        "Icelandic": "íáðéóúþæöý",
        "Catalan": "óàéèíòçúïü",
        "English": "éïèöüñçêà",
    },
    "cp1250": {
        "Polish": "łężąśćóńź",
        "Czech": "íáěřščžéůýúňťďó",
        "Slovak": "áíčšéýžúľťôóňäďŕĺ",
        "Hungarian": "áéőöóíüúű",
        "Croatian and Slovene": "ščžćđ",
        "Romanian": "ăîâşţ",
    },
    "iso8859-2": {
        "Polish": "łężąśćóńź",
        "Czech": "íáěřščžéůýúňťďó",
        "Slovak": "áíčšéýžúľťôóňäďŕĺ",
        "Hungarian": "áéőöóíüúű",
        "Croatian and Slovene": "ščžćđ",
    },
    "cp1254": {"Turkish": "ıüşğöçâî"},
    "cp1257": {"Lithuanian": "ėųšįžąčūę", "Latvian": "āīēšūņļķģžčō", "Estonian": "äõüöšž"},
}
_PUNCTUATION = frozenset("’‘“”„‚–—…«»‹›°§©®™€£¥¢¿¡·•¶±×÷½¼¾²³µªº†‡´¨¸¬¦№\xa0\xad")
# The letters of a language, the frequent ones first; letter n counts as exp(-n / 9).
_RUSSIAN = "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё"
_UKRAINIAN = "оанивтерсікдлпуямзбгчьхйшцюжєїщфґ"
_BULGARIAN = "аоиетнрсвлкдпмзгяъубчжщцхйшюфь"
_GREEK = "αοιετσνηυρπκμλςωάίόέδήγχύθφβώξζψ"
_ALPHABETIC = {
    "cp1251": (_RUSSIAN, _UKRAINIAN, _BULGARIAN),
    "koi8-r": (_RUSSIAN,),
    "koi8-u": (_UKRAINIAN,),
    "iso8859-5": (_RUSSIAN, _BULGARIAN),
    "cp866": (_RUSSIAN,),
    "cp1253": (_GREEK,),
    "iso8859-7": (_GREEK,),
}
_SIMPLIFIED = frozenset(
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然家种事成方多经么去法学如都同"
    "现当没动面起看定天分还进好小部其些主样理心她本前开但因只从想实日军者意无力它与长把机十民第公此已工使情明性知全三又关点正业外将两高间由问"
    "很最重并物手应战向头文体政美相见被利什二等产或新己制身果加西斯月话合回特代内信表化老给世位次度门任常先海通教儿原东声提立及比员解水名真论处"
    "走义各入几口认条平系气题活尔更别打女变四神总何电数安少报才结反受目太量再感建务做接必场件计管期市直德资命山金指克许统区保至队形社便空决治展"
    "字符返参值错误符号串配置注释"
)
_TRADITIONAL = frozenset(
    "的一是不了在人有我他這個們中來上大為和國地到以說時要就出會可也你對生能而子那得於著下自之年過發後作裡用道行所然家種事成方多經麼去法學如都同"
    "現當沒動面起看定天分還進好小部其些主樣理心她本前開但因只從想實日軍者意無力它與長把機十民第公此已工使情明性知全三又關點正業外將兩高間由問"
    "很最重並物手應戰向頭文體政美相見被利什二等產或新己制身果加西斯月話合回特代內信表化老給世位次度門任常先海通教兒原東聲提立及比員解水名真論處"
    "走義各入幾口認條平系氣題活爾更別打女變四神總何電數安少報才結反受目太量再感建務做接必場件計管期市直德資命山金指克許統區保至隊形社便空決治展"
    "字符返參值錯誤符號串設置註釋"
)
_JAPANESE = frozenset(
    "あいうえおかきくけこさしすせそたちつてとなにぬねのはひふへほまみむめもやゆよらりるれろわをんがぎぐげござじずぜぞだでどばびぶべぼぱぴぷぺぽ"
    "ぁぃぅぇぉっゃゅょアイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワンガギグゲゴザジズゼゾダデドバビブ"
    "ベボパピプペポァィゥェォッャュョー日本人大年一中会国時行分出上生前定表示設定変更関数値返処理文字列名前入力出力場合使用実行確認更新追加削除"
    "月的方法見事者物私今何"
)
_KOREAN = frozenset(
    "이다는을의에가고하은들를도로지서한있기그나과사어자리대해인아으것시수스일전만면보정라와여부제구상게까우동원적성장주습니합당없던았었했된되내오"
    "국용말때안등모할같중무위생연소공화유신실조경비였입력파설값함호출개발문본계세민관물마방저음더운각별며요새터트드러려르진처체행"
)
_EAST_ASIAN = {
    "gb18030": (_SIMPLIFIED, 0.28),
    "big5": (_TRADITIONAL, 0.28),
    "cp932": (_JAPANESE, 0.4),
    "euc_jp": (_JAPANESE, 0.4),
    "euc_kr": (_KOREAN, 0.45),
}
_EAST_ASIAN_SIGNS = re.compile(r"[\u3000-\u303f\uff00-\uffef\u2010-\u2027]")
_NARROWER = {"cp932": "shift_jis"}


class Guess(NamedTuple):
    """An encoding that fits: codec name, score from 0 to 1, and the text of the sample as it reads it."""

    name: str
    score: float
    text: str


def guess(data: bytes) -> list[str]:
    """Return the codec that fits a content best, and a wider one that reads the same; empty where none does, or several do."""
    sample = _sample(data)
    if sum(byte >= 0x80 for byte in sample) < _FEWEST:
        return []
    found = sorted(_scored(sample), key=lambda one: -one.score)
    if not found or found[0].score < _ENOUGH:
        return []
    best = found[0]
    # A codec that reads the same text is no rival.
    if any(one.text != best.text and one.score > best.score - _MARGIN for one in found[1:]):
        return []
    return [_NARROWER[best.name], best.name] if best.name in _NARROWER else [best.name]


def _sample(data: bytes) -> bytes:
    """Return the first lines with bytes beyond ASCII, a very long one cut."""
    out: list[bytes] = []
    size = 0
    for line in data.split(b"\n"):
        if not line.isascii():
            out.append(line[: _SAMPLE + 1])
            size += len(line)
            if size > _SAMPLE:
                break
    return b"\n".join(out)


def _scored(sample: bytes) -> list[Guess]:
    out: list[Guess] = []
    for names, score in ((_EAST_ASIAN, _east_asian), (_ALPHABETIC, _alphabetic), (_LATIN, _latin)):
        for name in names:
            try:
                # A cut line may end within a character.
                text = codecs.getincrementaldecoder(name)().decode(sample, len(sample) <= _SAMPLE)
            except UnicodeError:
                continue
            # Text has no control characters but these.
            if not re.search(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f-\x9f\ue000-\uf8ff]", text):
                out.append(Guess(name, score(name, text), text))
    return out


def _east_asian(name: str, text: str) -> float:
    """Score the share of everyday characters: 1 where it is as in running text."""
    common, usual = _EAST_ASIAN[name]
    wide = [char for char in text if char >= "\x80" and not _EAST_ASIAN_SIGNS.match(char)]
    if len(wide) < _FEWEST_WIDE:
        return 0.0
    return min(1.0, sum(char in common for char in wide) / len(wide) / usual)


_WORD = re.compile(r"[^\W\d_]+")
_ODD = re.compile(r"(?<=[^\W\d_])[^\w\s\x00-\x7f’·\xad](?=[^\W\d_])|([^\x00-\x7f])\1{2,}|(?<=[a-zß-ÿ])[À-ÖØ-Þ]")


def _alphabetic(name: str, text: str) -> float:
    """Score Cyrillic or Greek: words of one script, plain case, letters as frequent as in the language."""
    words = [word for word in _WORD.findall(text) if not word.isascii()]
    letters = "".join(words)
    signs = sum(char >= "\x80" and not char.isalnum() and char not in _PUNCTUATION for char in text)
    if not letters:
        return 0.0
    # A codec that swaps the cases reads other text as words in capitals.
    plain: float = sum(len(word) * (0.5 if word.isupper() else 1.0) for word in words if word[1:].islower() or word.isupper())
    shares = Counter(letters.lower())
    plain += sum(len(word) == 1 and word.islower() for word in words)
    fits = max(_likeness(shares, order) for order in _ALPHABETIC[name])
    share = plain / len(letters)
    return fits * share * share * (1 - min(1.0, signs / len(letters)))


def _likeness(shares: Counter[str], order: str) -> float:
    """Return the cosine between letters' counts and a language's frequencies, less the share of letters that it has not."""
    table = {char: math.exp(-rank / 9) for rank, char in enumerate(order)}
    dot = sum(count * table.get(char, 0.0) for char, count in shares.items())
    norm = math.sqrt(sum(count**2 for count in shares.values()) * sum(value**2 for value in table.values()))
    own = sum(count for char, count in shares.items() if char in table) / sum(shares.values())
    return dot / norm * own * own


def _latin(name: str, text: str) -> float:
    """Score Latin script: the share of characters beyond ASCII that fit one language, its frequent letters more."""
    foreign = Counter(char for char in text.lower() if char >= "\x80")
    total = sum(foreign.values())
    # In every such language most letters are plain.
    if sum(char.isascii() and char.isalpha() for char in text) < total:
        return 0.0
    # Signs inside words, capitals after small letters and the same letter three times are other text read wrongly.
    odd = sum(len(match[0]) for match in _ODD.finditer(text))
    signs = sum(count for char, count in foreign.items() if char in _PUNCTUATION)
    best = 0.0
    for letters in _LATIN[name].values():
        # The first half of an alphabet is what it mostly takes.
        usual = frozenset(letters[: max(3, (len(letters) + 1) // 2)])
        fits = sum(count * (1.0 if char in usual else 0.8) for char, count in foreign.items() if char in letters)
        best = max(best, (fits + signs * 0.9) / total)
    penalty = min(1.0, 3 * odd / total)
    # Of encodings that fit as well, the common one counts.
    return best * (1 - penalty) + (0.06 if name == "cp1252" else 0.0) * best
