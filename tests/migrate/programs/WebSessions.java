package org.example.web;

import java.time.Duration;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.WithinType;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.RichIterativeCondition;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;

/** Patterns on requests, with all kinds of tests of text. */
public final class WebSessions {

    public static class Request {
        public String path;
        public String method;
        public String agent;
        public Integer status;
        public long bytes;
        public long millis;
    }

    private static final String API = "/api/";
    private static final int SERVER_ERROR = 500;

    static boolean isError(Request request) {
        return request.status != null && request.status >= 400;
    }

    static final Pattern<Request, ?> SCAN = Pattern.<Request>begin("probe")
        .where(SimpleCondition.of(r -> r.path.contains("..") || r.path.endsWith(".php")))
        .where(SimpleCondition.of(r -> !r.method.equals("HEAD")))
        .timesOrMore(3)
        .within(Duration.ofSeconds(30), WithinType.PREVIOUS_AND_CURRENT);

    static final Pattern<Request, ?> RETRIES = Pattern.<Request>begin("failed", AfterMatchSkipStrategy.skipToLast("failed"))
        .where(SimpleCondition.of(WebSessions::isError))
        .times(2)
        .followedBy("worked")
        .where(new RichIterativeCondition<Request>() {
            @Override
            public boolean filter(Request request, Context<Request> ctx) throws Exception {
                if (isError(request)) {
                    return false;
                }
                String path = null;
                for (Request failed : ctx.getEventsForPattern("failed")) {
                    if (path == null) {
                        path = failed.path;
                    }
                }
                return request.path.equals(path);
            }
        })
        .within(Duration.ofMinutes(1));

    static Pattern<Request, ?> heavy() {
        return Pattern.<Request>begin("login")
            .where(SimpleCondition.of(r -> r.path.startsWith(API) && r.path.toLowerCase().endsWith("login")))
            .followedBy("download")
            .where(SimpleCondition.of(r -> r.bytes / 1024 > 40 && r.bytes % 2 == 0))
            .oneOrMore()
            .until(SimpleCondition.of(r -> r.path.equals("/logout")))
            .followedBy("big")
            .where(new IterativeCondition<Request>() {
                @Override
                public boolean filter(Request request, Context<Request> ctx) throws Exception {
                    long sum = 0L;
                    for (Request r : ctx.getEventsForPattern("download")) {
                        sum += r.bytes;
                    }
                    return sum > 100_000L && request.bytes > 10;
                }
            })
            .within(Duration.ofMinutes(2));
    }

    static Pattern<Request, ?> agents() {
        return Pattern.<Request>begin("bot")
            .where(SimpleCondition.of(r -> {
                String agent = r.agent;
                if (agent == null) {
                    return true;
                }
                return agent.matches("[a-z]+bot.*") || agent.trim().isEmpty();
            }))
            .notNext("robots")
            .where(SimpleCondition.of(r -> "/robots.txt".equals(r.path)))
            .followedByAny("server error")
            .where(SimpleCondition.of(r -> r.status != null && (r.status == SERVER_ERROR || r.status > 501 ? true : r.millis > 60_000)))
            .within(Duration.ofMinutes(1));
    }

    static Pattern<Request, ?> methods() {
        return Pattern.<Request>begin("read")
            .where(new SimpleCondition<Request>() {
                @Override
                public boolean filter(Request r) {
                    switch (r.method) {
                        case "GET":
                        case "HEAD":
                            return true;
                        case "OPTIONS":
                            return r.bytes == 0;
                        default:
                            return false;
                    }
                }
            })
            .next("write")
            .where(SimpleCondition.of(r -> r.method.compareTo("PAAA") > 0))
            .where(SimpleCondition.of(r -> r.path.indexOf('x') >= 0 || r.path.length() > 6))
            .next("odd")
            .where(SimpleCondition.of(r -> r.path.charAt(0) == '/' && r.path.substring(1).equals("x")))
            .optional();
    }

    private WebSessions() {}
}
