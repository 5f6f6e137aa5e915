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
 * Returns the journal of a file, which is created if it is missing. Each line is appended by one write, which the file
 * system puts at the end as a whole. No lock is needed, which a killed process might not release. Each write begins
 * with a line break, so that a line that a crash truncated stays separate from the next one; `apply` must ignore it.
 * After an error, discard this journal and read the file again with a new one.
 */
export function journalOf(file: string, apply: (line: string) => void): Journal {
  const unread = { from: 0, rest: Buffer.alloc(0) }
  let inode: number | undefined

  /** Throws if the file was deleted, replaced or truncated, because spending would then be forgotten. */
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

/** Without this call, a power failure can remove a new file, and the record of what was spent. */
async function syncDirectory(file: string): Promise<void> {
  if (process.platform === 'win32') return
  const directory = await open(path.dirname(file), 'r')
  await directory.sync().finally(() => directory.close())
}
