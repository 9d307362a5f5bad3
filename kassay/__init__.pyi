# The documented interface: one import per name. `kassay/__init__.py` reads the names from here.
from kassay.experiments.comparison.compare import compare as compare
from kassay.experiments.comparison.comparison_result import Comparison as Comparison
from kassay.experiments.notebook_helpers import load_captures as load_captures
from kassay.experiments.notebook_helpers import plot as plot
from kassay.experiments.notebook_helpers import residual_network as residual_network
from kassay.experiments.notebook_helpers import to_frame as to_frame
from kassay.experiments.notebook_helpers import to_networkx as to_networkx
from kassay.experiments.planning.plan import Plan as Plan
from kassay.experiments.planning.plan import plan as plan
from kassay.experiments.planning.scale import Scale as Scale
from kassay.experiments.planning.scale import scale as scale
from kassay.reference.assignors import ASSIGNORS as ASSIGNORS
from kassay.reference.assignors import assign as assign
from kassay.reference.documents.json_codec import load_assignment as load_assignment
from kassay.reference.documents.json_codec import load_group as load_group
from kassay.reference.documents.json_codec import load_groups as load_groups
from kassay.reference.model.assignment import Assignment as Assignment
from kassay.reference.model.assignment import movement as movement
from kassay.reference.model.assignment import violations as violations
from kassay.reference.model.errors import InputError as InputError
from kassay.reference.model.errors import UsageError as UsageError
from kassay.reference.model.group import Group as Group
from kassay.reference.model.group import Member as Member
from kassay.reference.model.group import Topic as Topic
from kassay.reference.model.metrics import Measure as Measure
from kassay.reference.model.metrics import imbalance as imbalance
from kassay.reference.model.metrics import loads as loads
from kassay.reference.model.ownership import Ownership as Ownership
from kassay.reference.model.ownership import ownership as ownership
from kassay.reference.model.topic_partitions import Partitions as Partitions
from kassay.reference.model.topic_partitions import TopicPartition as TopicPartition
from kassay.solver.certificate.certificate import Certificate as Certificate
from kassay.solver.certificate.check_trajectory import (
    trajectory_errors as trajectory_errors,
)
from kassay.solver.certificate.trajectory_certificate import (
    TrajectoryCertificate as TrajectoryCertificate,
)
from kassay.solver.certify import certify as certify
from kassay.solver.constraints import Capacity as Capacity
from kassay.solver.constraints import Colocated as Colocated
from kassay.solver.constraints import Forbidden as Forbidden
from kassay.solver.constraints import MaxMoves as MaxMoves
from kassay.solver.constraints import MaxPartitions as MaxPartitions
from kassay.solver.constraints import Pinned as Pinned
from kassay.solver.constraints import Separated as Separated
from kassay.solver.frontier.frontier import frontier as frontier
from kassay.solver.frontier.frontier_points import Frontier as Frontier
from kassay.solver.limits import SearchLimits as SearchLimits
from kassay.solver.network.improving_chains import Explanation as Explanation
from kassay.solver.network.improving_chains import explain as explain
from kassay.solver.objective import CrossRack as CrossRack
from kassay.solver.objective import Imbalance as Imbalance
from kassay.solver.objective import MembersUsed as MembersUsed
from kassay.solver.objective import Movement as Movement
from kassay.solver.objective import Tolerance as Tolerance
from kassay.solver.objective import TopicSpread as TopicSpread
from kassay.solver.sizing.member_loss import member_loss as member_loss
from kassay.solver.solution import Solution as Solution
from kassay.solver.solution import Status as Status
from kassay.solver.solve import Method as Method
from kassay.solver.solve import solve as solve
from kassay.solver.trajectory.trajectory import Trajectory as Trajectory
from kassay.solver.trajectory.trajectory import optimal_trajectory as optimal_trajectory
