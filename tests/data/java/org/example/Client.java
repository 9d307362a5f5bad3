package org.example;
public class Client extends org.apache.kafka.clients.consumer.CooperativeStickyAssignor {
    public static class Eager extends org.apache.kafka.clients.consumer.RangeAssignor { }
}
