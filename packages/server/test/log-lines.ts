import { PassThrough } from 'node:stream'
import { createLog, type Log } from '../src/platform/log.ts'

/** A log that keeps every line, at the most verbose level. */
export function aKeptLog(): { readonly lines: readonly string[]; readonly log: Log } {
  const lines: string[] = []
  const destination = new PassThrough()
  destination.on('data', (line: Buffer) => lines.push(line.toString('utf8')))
  return { lines, log: createLog({ level: 'trace', destination }) }
}
