package com.acme.fleet.cep;

import com.acme.fleet.model.Telemetry;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;

/** What all conditions of trucks have in common. */
public abstract class BaseCondition extends IterativeCondition<Telemetry> {
    private static final long serialVersionUID = 1L;
    protected final double limit;

    protected BaseCondition(double limit) {
        this.limit = limit;
    }

    @Override
    public boolean filter(Telemetry value, Context<Telemetry> ctx) throws Exception {
        if (value == null || value.getFuel() == null) {
            return false;
        }
        return accept(value, ctx);
    }

    protected abstract boolean accept(Telemetry value, Context<Telemetry> ctx) throws Exception;
}
