// SPDX-License-Identifier: Apache-2.0

package tests;

import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SQLConf$;
import scala.Option;

/** The settings of a session also in the threads of a JVM that belong to none. */
public class SessionSettings {
    /**
     * Lets those that answer the Python of a stateful task have them, too.
     *
     * <p>Else they have Spark's defaults, and compile each small projection of each state.
     */
    public static void share(SparkSession session) {
        SQLConf settings = session.sessionState().conf();
        SQLConf$.MODULE$.setSQLConfGetter(
                () -> {
                    Option<SparkSession> own = SparkSession.getActiveSession();
                    return own.isDefined() && own.get() != session
                            ? own.get().sessionState().conf()
                            : settings;
                });
    }
}
