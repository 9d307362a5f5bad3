from kassay import Assignment, Group, Member, Topic, solve
from kassay.reference.model.display import MAX_ROWS, bar, names, table
from tests.notation import changed, group


def _group(count: int = 2) -> Group:
    return Group(
        id="<g>",
        topics=(Topic(name="t&", partitions=count),),
        members=tuple(Member(id=f"<m{n}>", subscription=("t&",)) for n in range(count)),
    )


def test_names_in_html_tables_are_escaped():
    solution = solve(_group())
    for shown in (_group(), solution, solution.assignment):
        page = shown._repr_html_()
        assert "&lt;m0&gt;" in page
        assert "<m0>" not in page
        assert "t&-" not in page


def test_long_tables_end_with_the_number_of_other_rows():
    assert "and 3 more" in _group(MAX_ROWS + 3)._repr_html_()
    assert "more" not in _group(MAX_ROWS)._repr_html_()


def test_long_lists_end_with_the_number_of_other_names():
    assert names(range(14)).endswith("11 and 2 more")
    assert names([]) == ""


def test_bars_are_proportional_to_the_maximum():
    assert "width:160px" in bar(7, 7)
    assert "width:80px" in bar(2, 4)
    assert "width:0px" in bar(0, 0)


def test_an_assignment_without_members_is_an_empty_table():
    assert "<tbody></tbody>" in Assignment({})._repr_html_()
    assert "<tbody></tbody>" in table("", ("a",), [])


def test_an_infeasible_solution_is_shown_without_an_assignment():
    page = solve(changed(group("t:2", a="t"), a={"capacity": 1}))._repr_html_()
    assert "infeasible" in page
    assert "assignment" not in page
