import { type FileHandle, open } from 'node:fs/promises'
import path from 'node:path'

/** The lines of a file that several processes append to. */
export interface Journal {
  /**
   * Appends a line, waits until it is on the disk, and passes each new line up to and including this one to `apply`.
   * Every process passes the lines in the order of the file.
   */
  append(line: string): Promise<void>
  /** Passes the new lines to `apply`. */
  read(): Promise<void>
}

const newline = 10
const chunkBytes = 1024 * 1024

/**
 * Returns the journal of a file, which is made when it is missing. Each line is appended by one write, which the file
 * system puts at the end as a whole, so no lock is needed that could outlive a killed process. A line that a crash cut
 * short stays alone on its line, because each write begins with an end of line; `apply` ignores it. After a throw the
 * journal must be read anew by another one, from the start.
 */
export function journalOf(file: string, apply: (line: string) => void): Journal {
  const unread = { from: 0, rest: Buffer.alloc(0) }
  let inode: number | undefined

  /** A file that was deleted, replaced or cut short no longer counts what was spent. */
  const mustBeTheFile = async (handle: FileHandle) => {
    const { ino, size } = await handle.stat()
    if (inode === undefined) await syncDirectory(file)
    inode ??= ino
    if (ino !== inode || size < unread.from) throw new Error(`${file} was deleted or cut short while it was in use.`)
  }

  const readNew = async (handle: FileHandle) => {
    for (;;) {
      const chunk = await bytesFrom(handle, unread.from)
      if (chunk.length === 0) return
      unread.from += chunk.length
      const bytes = Buffer.concat([unread.rest, chunk])
      const end = bytes.lastIndexOf(newline) + 1
      unread.rest = Buffer.from(bytes.subarray(end))
      for (const line of bytes.toString('utf8', 0, end).split('\n')) if (line !== '') apply(line)
    }
  }

  const withFile = async (work: (handle: FileHandle) => Promise<void>) => {
    const handle = await open(file, 'a+', 0o600)
    try {
      await mustBeTheFile(handle)
      await work(handle)
      await readNew(handle)
    } finally {
      await handle.close()
    }
  }

  return {
    append: (line) => withFile((handle) => appendWhole(handle, Buffer.from(`\n${line}\n`))),
    read: () => withFile(async () => {}),
  }
}

async function appendWhole(handle: FileHandle, bytes: Buffer): Promise<void> {
  const { bytesWritten } = await handle.write(bytes)
  if (bytesWritten !== bytes.length) throw new Error(`${bytesWritten} of ${bytes.length} bytes were written.`)
  await handle.sync()
}

async function bytesFrom(handle: FileHandle, position: number): Promise<Buffer> {
  const buffer = Buffer.alloc(chunkBytes)
  const { bytesRead } = await handle.read(buffer, 0, chunkBytes, position)
  return buffer.subarray(0, bytesRead)
}

/** Without it a new file can be gone after a loss of power, and with it what was spent. */
async function syncDirectory(file: string): Promise<void> {
  if (process.platform === 'win32') return
  const directory = await open(path.dirname(file), 'r')
  await directory.sync().finally(() => directory.close())
}
