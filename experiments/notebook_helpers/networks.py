"""Convert groups and assignments to networkx graphs."""

from typing import TYPE_CHECKING, Any

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group
from kassay.reference.model.group_remarks import require_group
from kassay.solver.network.subscription_network import build_network
from kassay.solver.problem import build_problem

if TYPE_CHECKING:
    import networkx as nx


def to_networkx(group: Group, assignment: Assignment | None = None) -> "nx.Graph[Any]":
    """Return the bipartite graph between members and topics, or members and partitions.

    Without an assignment, an edge connects a member with each topic that it consumes. With an
    assignment, an edge connects a member with each of its partitions. Nodes are tuples
    (``"member"``, id), (``"topic"``, name) and (``"partition"``, topic, number); the attribute
    ``bipartite`` is 0 for members, else 1.

    Examples
    --------
    >>> from kassay.reference.model.group import Member, Topic
    >>> member = Member(id="a", subscription=("t",))
    >>> group = Group(topics=(Topic(name="t", partitions=2),), members=(member,))
    >>> sorted(to_networkx(group).edges)
    [(('member', 'a'), ('topic', 't'))]
    """
    import networkx as nx  # noqa: PLC0415 - only graphs need it

    require_group(group)
    graph: nx.Graph[Any] = nx.Graph()
    graph.add_nodes_from((("member", member.id) for member in group.members), bipartite=0)
    if assignment is not None:
        topics = group.topic_table()
        for member_id, partitions in assignment.items():
            for name, number in partitions:
                node = ("partition", name, number)
                graph.add_node(node, bipartite=1, weight=topics[name].weight(number))
                graph.add_edge(("member", member_id), node)
        return graph
    for topic in group.topics:
        graph.add_node(("topic", topic.name), bipartite=1, partitions=topic.partitions)
    for name, indices in group.subscribers().items():
        for index in indices:
            graph.add_edge(("member", group.members[index].id), ("topic", name))
    return graph


def residual_network(group: Group, assignment: Assignment) -> "nx.MultiDiGraph[Any]":
    """Return the residual flow network of an assignment as a networkx graph.

    An edge from a member to a topic means that the member can give a partition of the topic, with
    its number as attribute ``partitions``. An edge from a topic to a member means that the member
    can take a partition of the topic. A path from a member to another one with a load that is
    lower by two or more is an improving chain. Every partition has weight 1.

    Raises
    ------
    UsageError
        If the assignment is not valid for the group.
    """
    import networkx as nx  # noqa: PLC0415 - only graphs need it

    require_group(group)
    problem = build_problem(group)
    network = build_network(problem)
    counts = network.counts(problem.valid_placement(assignment))
    graph: nx.MultiDiGraph[Any] = nx.MultiDiGraph()
    loads = network.loads(counts).tolist()
    for name, load in zip(network.member_ids, loads, strict=True):
        graph.add_node(("member", name), load=load)
    for tail, head, count in zip(
        network.tail.tolist(), network.head.tolist(), counts.tolist(), strict=True
    ):
        topic = ("topic", network.topic_names[tail])
        member = ("member", network.member_ids[head])
        graph.add_edge(topic, member)
        if count:
            graph.add_edge(member, topic, partitions=count)
    return graph
