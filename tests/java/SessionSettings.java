// SPDX-License-Identifier: Apache-2.0

package tests;

import java.lang.reflect.Field;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SQLConf$;

/** The settings of a session also in the threads of a JVM that belong to none. */
public class SessionSettings {
    /**
     * Lets those that answer the Python of a stateful task have them, too.
     *
     * <p>Else they have Spark's defaults, and compile each small projection of each state. Each new
     * session, and each stream makes one, says anew how settings are found; so these take the place
     * of what is found where there is no session.
     */
    public static void share(SparkSession session) throws ReflectiveOperationException {
        SQLConf settings = session.sessionState().conf();
        SQLConf$.MODULE$.getFallbackConf(); // which is made now, so that it is not made later
        Field withoutSession = SQLConf$.class.getDeclaredField("fallbackConf");
        withoutSession.setAccessible(true);
        withoutSession.set(null, ThreadLocal.withInitial(() -> settings));
    }
}
