package org.apache.kafka.connect.runtime.distributed;
import org.apache.kafka.common.utils.*;
public class Own extends IncrementalCooperativeAssignor {
    public Own(LogContext log, Time time, int delay) { super(log, time, delay); }
}
