package com.acme.fleet.model;

import lombok.Value;

@Value
public class FuelAlert {
    String truckId;
    double lost;
    long from;
    long to;
    String message;
}
