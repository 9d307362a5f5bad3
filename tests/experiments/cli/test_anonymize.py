import json

from tests.experiments.cli.conftest import LOPSIDED_GROUP


def test_shared_documents_contain_no_old_name(kassay, write_groups, tmp_path):
    secret = json.loads(
        json.dumps(LOPSIDED_GROUP).replace('"t"', '"cards"').replace('"a"', '"eva"')
    )
    done = kassay("import", write_groups(secret), "--anonymize", "--names", tmp_path / "names.json")
    assert done.code == 0
    assert not [name for name in ("cards", "eva") if name in done.out]
    names = json.loads((tmp_path / "names.json").read_text())
    assert names["topic"] == {"cards": "topic-1"}
    assert names["member"] == {"b": "member-1", "eva": "member-2"}


def test_invalid_groups_are_reported_and_the_others_are_written(kassay, write_groups):
    groups = write_groups({"id": "g", "topics": 3, "members": []}, LOPSIDED_GROUP)
    done = kassay("import", "--anonymize", groups)
    assert done.code == 2
    assert [record["id"] for record in done.records] == ["group-1"]
    assert "topics: expected an object, got 3" in done.message
