"""The metrics of a survey are written to a file in one step."""

from kassay.experiments.planning.render_surveys import metrics_text
from kassay.reference.documents.files import write_text


def test_a_reader_never_sees_a_part_of_the_file(tmp_path):
    file = tmp_path / "new" / "kassay.prom"
    write_text(file, "old\n")
    with file.open() as reader:
        write_text(file, metrics_text([{"group": "g", "moves": 2, "spread": None}]))
        assert reader.read() == "old\n"
    samples = [line for line in file.read_text().splitlines() if not line.startswith("#")]
    assert samples == ['kassay_survey_moves{group="g"} 2']
    assert [path.name for path in file.parent.iterdir()] == ["kassay.prom"]
