import { auditGenesis, auditRecordBytes, bytesToHex, concatBytes, hexToBytes, sha256 } from '@purser/protocol'
import type { AuditRecord } from '../organisations.ts'

/** The result of a check of an audit log. */
export interface AuditLogVerdict {
  /** Whether the hash of every checked record is correct and every record contains the hash of the one before it. */
  readonly ok: boolean
  /** The sequence of the newest record that fails; undefined if none does. */
  readonly brokenAt: number | undefined
  /** The number of records that were checked. */
  readonly records: number
  /**
   * The number of places where records are missing because the caller may not see them. 0 with a live key, which sees
   * the whole log.
   */
  readonly gaps: number
  /** Whether the first record of the log was reached. An operator may have archived the records of old months. */
  readonly fromFirst: boolean
  /** The oldest record that was checked, and the hash before it: that of the last archived record, where records were archived. */
  readonly oldest: Pick<AuditRecord, 'sequence' | 'previousHash'> | undefined
  /**
   * The hash of the newest record. Store it elsewhere: a later check with `keptHash` then detects if the whole log was
   * rewritten.
   */
  readonly newestHash: string | undefined
  /** Whether a record of the log has the hash `keptHash`, or it is the hash before the oldest one. */
  readonly hasKept: boolean
}

export interface AuditLogCheck {
  readonly organisationId: string
  /** The `newestHash` of an earlier check. */
  readonly keptHash?: string | undefined
  /** Called after every 100 records with the number of records that were checked. */
  readonly onProgress?: ((records: number) => void) | undefined
}

const progressRecords = 100
const hashPattern = /^[0-9a-f]{64}$/

/**
 * Recomputes the hash of every record, newest first, and compares each link with the record before. Reads the list to
 * its end, or to the first record that fails. Removed newest records are not detected without `keptHash`, the
 * `newestHash` of an earlier check.
 *
 * @example
 * import { createPurser } from '@purser/sdk'
 * import { verifyAuditLog } from '@purser/sdk/seal'
 *
 * const purser = createPurser({ apiKey: process.env.PURSER_API_KEY ?? '', baseUrl: 'https://pay.example.com' })
 * const { id: organisationId } = await purser.organisations.current()
 * const { ok, brokenAt } = await verifyAuditLog(purser.organisations.auditLog({ limit: 500 }), { organisationId })
 */
export async function verifyAuditLog(
  newestFirst: AsyncIterable<AuditRecord>,
  { organisationId, keptHash, onProgress }: AuditLogCheck,
): Promise<AuditLogVerdict> {
  let records = 0
  let gaps = 0
  let hasKept = false
  let newestHash: string | undefined
  let newer: AuditRecord | undefined
  let brokenAt: number | undefined
  for await (const record of newestFirst) {
    const isNext = newer === undefined || record.sequence === newer.sequence - 1
    const isLinked = newer === undefined || !isNext || newer.previousHash === record.hash
    if (!isLinked || !isSound(organisationId, record) || (newer !== undefined && record.sequence >= newer.sequence)) {
      brokenAt = isLinked ? record.sequence : newer?.sequence
      break
    }
    if (!isNext) gaps += 1
    newestHash ??= record.hash
    hasKept ||= record.hash === keptHash
    newer = record
    records += 1
    if (records % progressRecords === 0) onProgress?.(records)
  }
  const oldest = newer && { sequence: newer.sequence, previousHash: newer.previousHash }
  const fromFirst = oldest?.sequence === 1 && oldest.previousHash === auditGenesis
  hasKept ||= oldest !== undefined && !fromFirst && oldest.previousHash === keptHash
  return { ok: brokenAt === undefined, brokenAt, records, gaps, fromFirst, oldest, newestHash, hasKept }
}

function isSound(organisationId: string, record: AuditRecord): boolean {
  if (!hashPattern.test(record.previousHash)) return false
  const covered = auditRecordBytes(organisationId, { ...record, sequence: String(record.sequence) })
  const bytes = concatBytes(hexToBytes(`0x${record.previousHash}`), covered)
  return bytesToHex(sha256(bytes)) === `0x${record.hash}`
}
