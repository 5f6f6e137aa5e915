import { canonicalJson } from './canonical-json.ts'
import { utf8 } from './utf8.ts'
import type { JsonObject } from './x402/messages.ts'

/**
 * A record of an audit log, as its hash covers it. `sequence` counts from 1 and is text, so that it is exact at any
 * size.
 */
export interface AuditedRecord {
  readonly id: string
  readonly sequence: string
  readonly environment: string | null
  readonly action: string
  readonly actor: JsonObject
  readonly requestId: string
  readonly target: string | null
  readonly details: JsonObject
  /** RFC 3339 in UTC with milliseconds. */
  readonly createdAt: string
}

/** The previous hash of the first record: 32 zero bytes in hex. */
export const auditGenesis = '0'.repeat(64)

/**
 * Returns the bytes that the hash of a record covers in addition to the previous hash (32 bytes, which come first):
 * canonical JSON (RFC 8785) of the record with the `organisationId` of its log. Throws a `TypeError` for values that
 * JSON cannot represent.
 *
 * @example
 * const record = { id: 'aud_1', sequence: 1, environment: 'test', action: 'api-key.created', actor: null, requestId: null, target: null, details: {}, createdAt: '2026-11-26T12:00:00.000Z' }
 * new TextDecoder().decode(auditRecordBytes('org_1', record)).startsWith('{"action":"api-key.created"') // true
 */
export function auditRecordBytes(organisationId: string, record: AuditedRecord): Uint8Array {
  const { id, sequence, environment, action, actor, requestId, target, details, createdAt } = record
  const covered = { id, sequence, environment, action, actor, requestId, target, details, createdAt, organisationId }
  return utf8(canonicalJson(covered))
}
