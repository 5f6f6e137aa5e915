import { PassThrough } from 'node:stream'
import { createLog, type Log } from '../src/platform/log.ts'

/** A log whose every line is kept, at the most talkative level. */
export function aKeptLog(): { readonly lines: readonly string[]; readonly log: Log } {
  const lines: string[] = []
  const destination = new PassThrough()
  destination.on('data', (line: Buffer) => lines.push(line.toString('utf8')))
  return { lines, log: createLog({ level: 'trace', destination }) }
}
