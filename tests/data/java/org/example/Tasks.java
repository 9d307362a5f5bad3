package org.example;
import org.apache.kafka.streams.processor.assignment.assignors.StickyTaskAssignor;
public class Tasks extends StickyTaskAssignor { }
