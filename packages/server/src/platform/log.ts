import { type DestinationStream, type Logger, pino } from 'pino'

export type Log = Logger

/** Header and field names whose values never reach a log line, at any place in the logged object. */
const redactedPaths = [
  'apiKey',
  'authorization',
  'credential',
  'privateKey',
  'secret',
  'settlementToken',
  'signature',
  'key',
].flatMap((name) => [name, `*.${name}`, `*.*.${name}`])

/**
 * Structured JSON lines. Redaction is by field name: a secret may only be logged under one of the names above, and by rule
 * (CONTRIBUTING.md) is not logged at all.
 */
export function createLog(options: { level: string; destination?: DestinationStream }): Log {
  const settings = {
    level: options.level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: { paths: redactedPaths, censor: '[redacted]' },
  }
  return options.destination === undefined ? pino(settings) : pino(settings, options.destination)
}
