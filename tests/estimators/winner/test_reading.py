import pytest

from ebql.errors import InputError
from ebql.estimators.winner import parse_sheet, read_sheet
from ebql.estimators.winner.reading import LAYOUTS


def read(text):
    sheet = parse_sheet(text)
    arms = sheet.arms
    return dict(zip(arms.names, zip(arms.counts.tolist(), arms.means.tolist(), strict=True), strict=True))


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffold,new\n1,2\n3,4\n",
        "old;new\n1;2\n3;4\n",
        "old;new\n1,0;2,0\n3,00;4\n",
        "old\tnew\r\n1\t2\r\n3\t4\r\n",
        "\n , \nold,new\n\n1,2\n3,4\n",
        '"old","new"\n"1","2"\n3,4\n',
        "date,old,new\n2024-05-01,1,2\n2024-05-02,3,4\n",
        "old;day;new\n1;01.05.2024;2\n3;02.05.2024;4\n",
        "week,old,new\n1,1,2\n2,3,4\n",
        "user_id,old,new\n17,1,2\n18,3,4\n",
        "variant,revenue\nold,1\nnew,2\nold,3\nnew,4\n",
        "user,variant,revenue\nu1,old,1\nu2,new,2\nu3,old,3\nu4,new,4\n",
        "timestamp\tcohort\trevenue\n2024-05-01T10:00\told\t1,0\n2024-05-01 11:00\tnew\t2\n"
        "2024-05-02\told\t3\n2024-05-02\tnew\t4\n2024-05-02\tnew\t\n",
        "variant,n,mean,std\nold,2,2,1.5\nnew,2,3,1.5\n",
        "Variant;Samples;Average;SD\nold;2;2,0;1,5\nnew;2;3;1,5\n",
    ],
)
def test_every_layout_and_separator_gives_the_same_arms(text):
    assert read(text) == {"old": (2, 2.0), "new": (2, 3.0)}


@pytest.mark.parametrize(
    "text",
    [
        "variant,visitors,conversions\nA,100,10\nB,200,40\n",
        "date;variant;visitors;conversions\n2024-05-01;A;60;4\n2024-05-01;B;150;30\n"
        "2024-05-02;A;40;6\n2024-05-02;B;50;10\n",
        "group\tusers\tclicks\tctr\nA\t100\t10\t0,1\nB\t200\t40\t0,2\n",
    ],
)
def test_totals_of_conversions_are_rates_and_days_add_up(text):
    sheet = parse_sheet(text)
    assert read(text) == {"A": (100, 0.1), "B": (200, 0.2)}
    assert sheet.arms.binary
    assert ("The 4 rows were added up by 'variant'." in sheet.notes) == ("2024" in text)


@pytest.mark.parametrize(
    "text",
    [
        "variant\tn\tmean\tstd\nA\t10,000\t5.1\t2.0\nB\t12,000\t5.2\t2.0\n",
        "variant;n;mean;std\nA;10.000;5,1;2,0\nB;12.000;5,2;2,0\n",
        "variant\tvisitors\tconversions\nA\t9000\t3,000\nB\t8000\t800\n",
    ],
)
def test_separators_of_thousands_are_not_read_as_decimals(text):
    with pytest.raises(InputError, match="at line 2, column [23] .* without a separator of thousands"):
        parse_sheet(text)
    assert read("variant,n,mean,std\nA,4000.0,5,2\nB,4000.000,5,2\n") == {"A": (4000, 5), "B": (4000, 5)}
    assert read("variant,converted\nA,1.000\nA,0.000\nB,1.000\nB,1.000\n") == {"A": (2, 0.5), "B": (2, 1)}


def test_names_of_arms_are_not_data():
    text = "version,visitors,conversions\n1.2.10,4000,200\n1.2.11,4000,400\n"  # they look like dates
    assert read(text) == {"1.2.10": (4000, 0.05), "1.2.11": (4000, 0.1)}
    assert set(read("treatment,converted\nTRUE,1\nTRUE,0\nFALSE,yes\nFALSE,no\n")) == {"TRUE", "FALSE"}
    with pytest.raises(InputError, match="has totals, but no column that names the arms"):
        parse_sheet("week,visitors,conversions\n1,4000,200\n2,4000,400\n")


def test_a_row_for_each_user_holds_no_totals():
    text = "user_id,variant,sessions,converted\n1,A,5,0\n2,A,9,1\n3,B,2,1\n4,B,1,1\n"
    with pytest.raises(InputError, match="beside 'variant', but has 'sessions', 'converted'"):
        parse_sheet(text)
    segments = "customer,variant,visitors,conversions\nX,A,40,2\nX,B,40,4\nY,A,60,3\nY,B,60,6\n"
    assert read(segments) == {"A": (100, 0.05), "B": (100, 0.1)}


def test_long_conversions_may_be_words_and_variants_may_be_numbers():
    text = "user,variant,converted\n1,0,yes\n2,1,no\n3,0,FALSE\n4,1,true\n5,1,1\n"
    assert parse_sheet(text).arms.binary
    assert read(text) == {"0": (2, 0.5), "1": (3, 2 / 3)}


def test_what_was_left_out_is_named_and_a_missing_header_told():
    sheet = parse_sheet(
        "user,date,variant,revenue\n1,2024-01-01,A,1\n2,2024-01-01,A,3\n3,2024-01-02,B,5\n4,2024-01-02,B,6\n"
    )
    assert sheet.notes == (
        "The column 'user' was left out: it holds identifiers.",
        "The column 'date' was left out: it holds dates.",
    )
    assert sheet.layout == "one row per observation: variant, revenue"
    assert parse_sheet("1,2\n3,4\n").notes == ("No header found: the first row counts as samples.",)
    assert parse_sheet("a,b\n1,2\n3,4\n").notes == ()
    blank = parse_sheet("variant,sold\nA,1\nA,0\nA,\nB,1\nB,0\n")
    assert blank.notes == ("Left out: 1 of 5 rows, blank in 'sold'.",)
    rated = parse_sheet("variant,rating\nA,5\nA,5\nA,\nB,5\nB,5\n")  # a blank is no rating of 0
    assert rated.notes == ("Left out: 1 of 5 rows, blank in 'rating'.",)


def test_columns_may_be_unnamed_unequal_and_padded():
    assert read("1, 2,\n3,4,\n\n,5,\n") == {"arm 1": (2, 2.0), "arm 2": (3, 11 / 3)}


def test_a_name_may_contain_another_separator():
    assert list(read("price; EUR,size\n1,2\n3,4\n")) == ["price; EUR", "size"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n3,x\n", "Not a number at line 3, column 2 (b): 'x'."),
        ("1,2\n3,4;5\n", "Not a number at line 2, column 2 (arm 2): '4;5'."),
        ('a,b\n\n"1\n",2\n3,x\n', "Not a number at line 5, column 2 (b): 'x'."),
        ("a,b\n1,2\n1_000,2\n", "Not a number at line 3, column 1 (a): '1_000'."),
        ("a,b\n1,2\n1e308,1\n", "samples of 'a' reach 1e+308 in size: rescale them"),
        ("a,b\n1,nan\n", "NaN or infinity at line 2, column 2 (b): 'nan'."),
        ("a,b\n1,2\n3,\n", "Arm 'b' has 1 sample(s); every arm needs at least 2"),
        ("a,b\n", "Arm 'a' has 0 sample(s)"),
        ("a,a\n1,2\n3,4\n", "Two arms are called 'a'"),
        ("variant,visitors,conversions\nA,10,11\nB,10,1\n", "'A' has more successes (11) than samples (10)"),
        ("variant,visitors,conversions\nA,10.5,1\nB,10,1\n", "not '10.5' at line 2, column 2 (visitors)"),
        ("variant,visitors,conversions\nA,10,\nB,10,1\n", "A number is missing at line 2, column 3"),
        ("variant,n,mean,std\nA,10,1,1\nA,10,2,1\n", "Two arms are called 'A'"),
        ("variant,n,mean,std\nA,1,1,1\nB,10,2,1\n", "must be at least 2"),
        ("variant,n,mean,std\nA,10,1,-1\nB,10,2,1\n", "stds must not be negative"),
        ("variant,converted\nA,1\nA,0\nA,1\n", "at least 2 arms"),
        ("variant,converted\n,1\nA,0\nA,1\n", "The arm's name is missing at line 2 (variant)"),
        ("variant,visitors,conversions\n", "has a header, but no rows"),
        ("variant,n,mean,std\n", "has a header, but no rows"),
        ("", "is empty"),
        (" , \n", "is empty"),
    ],
)
def test_a_mistake_in_the_table_is_told_with_its_place(text, message):
    with pytest.raises(InputError) as refusal:
        parse_sheet(text)
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a\n1\n2\n", "has one column"),
        ("date,day\n2024-01-01,1\n2024-01-02,2\n", "has no column of numbers or names"),
        ("colour,shape\nred,round\nblue,square\nred,round\nblue,round\n", "'colour' or 'shape'?"),
        ("variant,revenue,clicks\nA,1,2\nB,2,3\nA,1,2\nB,2,2\n", "but has 'revenue', 'clicks'"),
        ("variant,rate\nA,0.1\nB,0.2\nC,0.3\n", "has 3 different names in 'variant', most of them once"),
        ("variant\nA\nB\nA\n", "but has none"),
        ("variant,sold\nA,1\nA,\nB,1\nB,\nB,\n", "has only successes (1) and blank cells in 'sold': write 0"),
    ],
)
def test_a_table_that_fits_no_layout_is_told_which_layouts_there_are(text, reason):
    with pytest.raises(InputError) as refusal:
        parse_sheet(text, "test.csv")
    told = str(refusal.value)
    assert told.startswith("test.csv ")
    assert reason in told
    assert LAYOUTS in told
    assert "\n" not in told


def test_a_file_that_is_not_there_or_not_text_is_refused(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        read_sheet(tmp_path / "none.csv")
    with pytest.raises(InputError, match="Cannot read"):
        read_sheet(tmp_path)
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(InputError, match="not a CSV text file"):
        read_sheet(tmp_path / "bytes.csv")
