import { decodeBase64Url } from './base64.ts'
import { canonicalJson } from './canonical-json.ts'
import type { EventsHead } from './event-chain.ts'
import { type Cursor, enter, list, member, note, optionalObject, type Trouble, text } from './x402/fields.ts'
import type { JsonObject } from './x402/messages.ts'

/**
 * An item of a sealed vault. `size` is in bytes and `sha256` in lower-case hex. Both are of the content: the bytes of a
 * file, or `documentContent` of a document's data. A document has no `mimeType`.
 */
export type SealedItem = {
  readonly kind: 'document' | 'file'
  readonly id: string
  readonly name: string
  readonly mimeType?: string | undefined
  readonly size: number
  readonly sha256: string
}

/**
 * The contents of a vault when it was sealed. `items` are sorted by id (UTF-16 code units) and unique. `eventsHead`
 * covers all events before that of the seal itself. `payment` is the receipt of the payment for the vault, or null.
 * `sealedAt` is UTC with milliseconds. There are no other members.
 */
export type SealManifest = {
  readonly version: 1
  readonly vaultId: string
  readonly organisationId: string
  readonly summary: string | null
  readonly sealedAt: string
  readonly items: readonly SealedItem[]
  readonly eventsHead: EventsHead
  readonly payment: JsonObject | null
}

/** The statement that the service signs: the payload of the statement's JWS. Hashes are SHA-256 in lower-case hex. */
export type SealStatement = {
  readonly version: 1
  readonly vaultId: string
  readonly sealedAt: string
  readonly manifestHash: string
  readonly merkleRoot: string
  readonly treeSize: number
}

/** An Ed25519 public key: `kid` as a statement's JWS names it (`did:web:pay.example.com#seal-1`), `x` its 32 bytes in base64url. */
export type SealKey = { readonly kid: string; readonly x: string }

/**
 * The whole proof of a sealed vault: its manifest, and the signed statement as a compact JWS. `keys` saves online
 * readers a request and proves nothing: a forger can put their own keys there.
 */
export type SealProof = {
  readonly manifest: SealManifest
  readonly statement: string
  readonly keys?: readonly SealKey[] | undefined
}

/**
 * The proof that one item was in a sealed vault, without the others: its index, and the audit path in hex, lowest hash
 * first.
 */
export type ItemProof = {
  readonly item: SealedItem
  readonly index: number
  readonly path: readonly string[]
  readonly treeSize: number
  readonly statement: string
}

/** The limits of a manifest. The limits of a vault are the same or lower, so that every vault can be sealed. */
export const sealLimits = {
  itemsMax: 100_000,
  nameLengthMax: 4_096,
  mimeTypeLengthMax: 255,
  summaryLengthMax: 2_000,
  statementLengthMax: 8_192,
} as const

/**
 * The position of a fault (JSON Pointer, empty for the whole value), and a sentence that contains no text of the input.
 */
export type SealTrouble = { readonly path: string; readonly message: string }
export type SealRead<T> = { readonly value: T } | { readonly fault: SealTrouble }

const keysMax = 100
const pathMax = 20
const idLengthMax = 128
const kidLengthMax = 512
const hashPattern = /^[0-9a-f]{64}$/
const timePattern = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/

/**
 * Reads a manifest strictly: it must have exactly the known members, sorted and unique items, and nothing above
 * `sealLimits`.
 *
 * @example
 * readManifest({ version: 2 }) // { fault: { path: '/vaultId', message: 'must be there' } }
 */
export function readManifest(value: unknown): SealRead<SealManifest> {
  return read(value, manifestAt)
}

/** Reads the payload of a statement strictly. */
export function readStatement(value: unknown): SealRead<SealStatement> {
  return read(value, statementAt)
}

/**
 * Reads a whole proof strictly; the JWS itself is not parsed.
 *
 * @example
 * const item = { kind: 'document', id: 'doc_1', name: 'report.json', size: 2, sha256: '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a' }
 * const facts = { vaultId: 'vlt_1', organisationId: 'org_1', summary: null, sealedAt: '2026-11-26T12:00:00.000Z', payment: null }
 * const manifest = buildManifest({ ...facts, items: [item], eventsHead: noEvents })
 * 'value' in readSealProof({ manifest, statement: 'a.b.c' }) // true
 * 'fault' in readSealProof({ manifest }) // true
 */
export function readSealProof(value: unknown): SealRead<SealProof> {
  return read(value, (cursor) => {
    const hasKeys = cursor.object.keys !== undefined
    expectMembers(cursor, ['manifest', 'statement', ...(hasKeys ? ['keys'] : [])])
    const manifest = manifestAt(member(cursor, 'manifest'))
    const statement = text(cursor, 'statement', sealLimits.statementLengthMax)
    if (!hasKeys) return { manifest, statement }
    const keys = list(cursor, 'keys', keysMax, (key, path) => keyAt(enter(key, path, cursor.trouble)))
    return { manifest, statement, keys }
  })
}

/**
 * Reads the proof of one item strictly.
 *
 * @example
 * 'fault' in readItemProof({ index: 0 }) // true
 */
export function readItemProof(value: unknown): SealRead<ItemProof> {
  return read(value, (cursor) => {
    expectMembers(cursor, ['item', 'index', 'path', 'treeSize', 'statement'])
    return {
      item: itemAt(member(cursor, 'item')),
      index: count(cursor, 'index'),
      path: list(cursor, 'path', pathMax, (hash, path) => hashOf(hash, path, cursor.trouble)),
      treeSize: count(cursor, 'treeSize'),
      statement: text(cursor, 'statement', sealLimits.statementLengthMax),
    }
  })
}

function read<T>(value: unknown, readAt: (cursor: Cursor) => T): SealRead<T> {
  const trouble: Trouble = { first: undefined }
  const result = readAt(enter(value, '', trouble))
  if (trouble.first === undefined && !isCanonical(result)) note(trouble, '', 'must be JSON that has a canonical text')
  return trouble.first === undefined ? { value: result } : { fault: trouble.first }
}

function manifestAt(cursor: Cursor): SealManifest {
  const { object, trouble, path } = cursor
  const names = ['version', 'vaultId', 'organisationId', 'summary', 'sealedAt', 'items', 'eventsHead', 'payment']
  expectMembers(cursor, names)
  const items = list(cursor, 'items', sealLimits.itemsMax, (item, at) => itemAt(enter(item, at, trouble)))
  const misplaced = items.findIndex(({ id }, index) => index > 0 && id <= (items[index - 1]?.id ?? ''))
  if (misplaced !== -1) note(trouble, `${path}/items/${misplaced}/id`, 'must come after the id of the item before it')
  return {
    version: versionOne(cursor),
    vaultId: text(cursor, 'vaultId', idLengthMax),
    organisationId: text(cursor, 'organisationId', idLengthMax),
    summary: object.summary === null ? null : text(cursor, 'summary', sealLimits.summaryLengthMax, 0),
    sealedAt: instant(cursor, 'sealedAt'),
    items,
    eventsHead: eventsHeadAt(member(cursor, 'eventsHead')),
    payment: optionalObject(cursor, 'payment') ?? null,
  }
}

function statementAt(cursor: Cursor): SealStatement {
  expectMembers(cursor, ['version', 'vaultId', 'sealedAt', 'manifestHash', 'merkleRoot', 'treeSize'])
  return {
    version: versionOne(cursor),
    vaultId: text(cursor, 'vaultId', idLengthMax),
    sealedAt: instant(cursor, 'sealedAt'),
    manifestHash: hash(cursor, 'manifestHash'),
    merkleRoot: hash(cursor, 'merkleRoot'),
    treeSize: count(cursor, 'treeSize'),
  }
}

function itemAt(cursor: Cursor): SealedItem {
  const { object, trouble, path } = cursor
  const kind = object.kind === 'file' ? 'file' : 'document'
  if (object.kind !== kind) note(trouble, `${path}/kind`, 'must be document or file')
  const hasType = kind === 'file' && object.mimeType !== undefined
  expectMembers(cursor, ['kind', 'id', 'name', ...(hasType ? ['mimeType'] : []), 'size', 'sha256'])
  const id = text(cursor, 'id', idLengthMax)
  const name = text(cursor, 'name', sealLimits.nameLengthMax)
  const [size, sha256] = [count(cursor, 'size'), hash(cursor, 'sha256')]
  if (!hasType) return { kind, id, name, size, sha256 }
  return { kind, id, name, mimeType: text(cursor, 'mimeType', sealLimits.mimeTypeLengthMax), size, sha256 }
}

function eventsHeadAt(cursor: Cursor): SealManifest['eventsHead'] {
  expectMembers(cursor, ['count', 'hash'])
  return { count: count(cursor, 'count'), hash: hash(cursor, 'hash') }
}

function keyAt(cursor: Cursor): SealKey {
  expectMembers(cursor, ['kid', 'x'])
  const key = { kid: text(cursor, 'kid', kidLengthMax), x: text(cursor, 'x', 43, 43) }
  if (decodeBase64Url(key.x)?.length !== 32) note(cursor.trouble, `${cursor.path}/x`, 'must be 32 bytes in base64url')
  return key
}

/** Requires every named member and no other, so that nothing unread is signed. */
function expectMembers({ object, path, trouble }: Cursor, names: readonly string[]): void {
  const missing = names.find((name) => !Object.hasOwn(object, name))
  if (missing !== undefined) note(trouble, `${path}/${missing}`, 'must be there')
  if (Object.keys(object).some((name) => !names.includes(name))) note(trouble, path, 'must have no other members')
}

function versionOne({ object, path, trouble }: Cursor): 1 {
  if (object.version !== 1) note(trouble, `${path}/version`, 'must be 1')
  return 1
}

function count({ object, path, trouble }: Cursor, name: string): number {
  const value = object[name]
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && !Object.is(value, -0)) return value
  note(trouble, `${path}/${name}`, 'must be a whole number from 0 to 2^53 - 1')
  return 0
}

function instant(cursor: Cursor, name: string): string {
  const value = text(cursor, name, 24, 24)
  if (!timePattern.test(value))
    note(cursor.trouble, `${cursor.path}/${name}`, 'must be an instant in UTC to the millisecond')
  return value
}

function hash({ object, path, trouble }: Cursor, name: string): string {
  return hashOf(object[name], `${path}/${name}`, trouble)
}

function hashOf(value: unknown, path: string, trouble: Trouble): string {
  if (typeof value === 'string' && hashPattern.test(value)) return value
  note(trouble, path, 'must be 64 lower-case hex digits')
  return ''
}

function isCanonical(value: unknown): boolean {
  try {
    return canonicalJson(value) !== ''
  } catch {
    return false
  }
}
