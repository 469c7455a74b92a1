// SPDX-License-Identifier: Apache-2.0

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/** Hadoop's local files, but it sets permissions itself, where Hadoop starts chmod each time. */
public class QuickFileSystem extends LocalFileSystem {
    public QuickFileSystem() {
        super(new Raw());
    }

    private static class Raw extends RawLocalFileSystem {
        @Override
        public void setPermission(Path path, FsPermission permission) throws IOException {
            String all =
                    permission.getUserAction().SYMBOL
                            + permission.getGroupAction().SYMBOL
                            + permission.getOtherAction().SYMBOL;
            Files.setPosixFilePermissions(
                    pathToFile(path).toPath(), PosixFilePermissions.fromString(all));
        }
    }
}
