import { durationSecondsMax, parseDuration, sealLimits } from '@purser/protocol'
import { z } from 'zod'
import type { Id } from '../../platform/ids.ts'
import { id } from '../../platform/ids.ts'
import { named } from '../../platform/named.ts'
import { AnyJsonObject, Instant, Metadata, PageQuery, text } from '../../platform/wire.ts'
import { UsageFigure } from '../plans/index.ts'

export type VaultId = Id<'vlt'>

/** A time to live as in the API (`30m`, `24h`, `7d`), parsed into seconds. */
const Ttl = z
  .string()
  .transform((written, ctx) => {
    const seconds = parseDuration(written)
    if (typeof seconds === 'number') return seconds
    const message =
      seconds === 'too-long'
        ? `must be at most ${durationSecondsMax / 86_400} days`
        : 'must be a duration such as 30m, 24h or 7d'
    ctx.addIssue({ code: 'custom', message })
    return z.NEVER
  })
  .meta({ example: '24h' })

/** Any JSON object with a canonical text: what is hashed must be returned unchanged. */
const JsonData = AnyJsonObject.refine(
  hasFiniteNumbers,
  'must have no number beyond what a double-precision float holds',
)

function hasFiniteNumbers(value: unknown): boolean {
  if (typeof value === 'number') return Number.isFinite(value)
  return typeof value !== 'object' || value === null || Object.values(value).every(hasFiniteNumbers)
}

export const NewVault = z.strictObject({
  description: text(2_000).optional(),
  ttl: Ttl.optional(),
  metadata: Metadata.optional(),
})
export type NewVault = z.output<typeof NewVault>

/** Omitted fields stay unchanged. */
export const VaultChange = z.strictObject({
  description: text(2_000).nullable().optional().meta({ description: 'null takes it away.' }),
  metadata: Metadata.optional().meta({ description: 'Takes the place of all that was there.' }),
})
export type VaultChange = z.output<typeof VaultChange>

const vaultStatuses = ['active', 'sealed', 'persisted'] as const
export const VaultStatus = z.enum(vaultStatuses)
export type VaultStatus = z.output<typeof VaultStatus>

/** A vault as the document defines it. `ttl` is the instant at which it expires; null once it is persisted. */
export const Vault = z.strictObject({
  id: id('vlt'),
  organisationId: id('org'),
  status: VaultStatus,
  createdAt: Instant,
  description: z.string().nullable().meta({ description: 'Null when none was given.' }),
  metadata: z.record(z.string(), z.unknown()),
  sessionId: id('sess')
    .nullable()
    .meta({ description: 'The session that it came with; null when it was made by itself.' }),
  ttl: Instant.nullable(),
  summary: z.string().nullable(),
  sealedAt: Instant.nullable(),
  persistedAt: Instant.nullable(),
  manifestHash: z
    .string()
    .nullable()
    .meta({ description: 'SHA-256 of the manifest, in hex; null until it is sealed.' }),
})
export type Vault = z.input<typeof Vault>

export const VaultParams = z.strictObject({ id: id('vlt') })
export const DocumentParams = z.strictObject({ id: id('vlt'), docId: id('doc') })
export const VaultQuery = PageQuery.extend({ status: VaultStatus.optional() })

/** A document. `size` and `sha256` cover its data as canonical JSON (RFC 8785) in UTF-8. */
export const VaultDocument = z.strictObject({
  id: id('doc'),
  name: z.string(),
  data: z
    .record(z.string(), z.unknown())
    .optional()
    .meta({ description: 'Left out of a vault’s own record beyond 256 KiB in all; the document’s address has it.' }),
  size: z.int(),
  sha256: z.string(),
  createdAt: Instant,
})
export type VaultDocument = z.input<typeof VaultDocument>

export const VaultFile = z.strictObject({
  id: id('fil'),
  name: z.string(),
  mimeType: z.string(),
  size: z.int(),
  sha256: z.string(),
  url: z.url().meta({ description: 'A link that needs no header, good for a quarter of an hour.' }),
  createdAt: Instant,
})
export type VaultFile = z.input<typeof VaultFile>

const SealedItem = z.strictObject({
  kind: z.enum(['document', 'file']),
  id: z.string(),
  name: z.string(),
  mimeType: z.string().optional(),
  size: z.int(),
  sha256: z.string(),
})

/** The contents of a vault when it was sealed: see `SealManifest` in the protocol package. */
export const Manifest = z.strictObject({
  version: z.literal(1),
  vaultId: id('vlt'),
  organisationId: id('org'),
  summary: z.string().nullable(),
  sealedAt: z.string(),
  items: z.array(SealedItem),
  eventsHead: z.strictObject({ count: z.int(), hash: z.string() }),
  payment: z.record(z.string(), z.unknown()).nullable(),
})
export type Manifest = z.output<typeof Manifest>

/** The manifest that a seal would sign now: `Manifest` without the time of sealing and without a signature. */
const RunningManifest = Manifest.extend({ sealedAt: z.null() })
export type RunningManifest = z.output<typeof RunningManifest>

export const VaultState = Vault.extend({
  documents: z.array(VaultDocument),
  files: z.array(VaultFile),
  eventCount: z.int(),
  manifest: z
    .union([Manifest, RunningManifest])
    .meta({ description: 'What the seal froze; before it, what a seal would freeze now, with `sealedAt` null.' }),
})
export type VaultState = z.input<typeof VaultState>

/** Most bytes of a document's data as canonical JSON: 1 MB is 2^20 bytes. */
export const documentBytesMax = 2 ** 20

export const NewDocument = z.strictObject({ name: text(255, 1), data: JsonData })
export type NewDocument = z.output<typeof NewDocument>

const systemEvents = ['document.added', 'file.added', 'file.deleted']

/** The name of a caller's event. Names of the service's own events are reserved, since readers stop at `vault.sealed`. */
const EventName = text(128, 1).refine(
  (name) => !name.startsWith('vault.') && !systemEvents.includes(name),
  `must not begin with "vault." nor be ${systemEvents.join(', ')}, which the service itself emits`,
)

/** The payload of an event, bounded as metadata is, since every open stream sends it. */
const EventPayload = Metadata.refine(hasFiniteNumbers, 'must have no number beyond what a double-precision float holds')

export const NewVaultEvent = z.strictObject({ event: EventName, payload: EventPayload.optional() })
export type NewVaultEvent = z.output<typeof NewVaultEvent>

/** An event as the stream sends it. */
export const VaultEvent = z.strictObject({
  eventId: id('evt'),
  type: z.string(),
  vaultId: id('vlt'),
  timestamp: z.iso.datetime(),
  payload: z.record(z.string(), z.unknown()),
})
export type VaultEvent = z.output<typeof VaultEvent>

export const ExtendRequest = z.strictObject({ ttl: Ttl })
export type ExtendRequest = z.output<typeof ExtendRequest>

export const SealRequest = z.strictObject({ summary: text(sealLimits.summaryLengthMax).optional() })
export type SealRequest = z.output<typeof SealRequest>

export const VaultQuota = z.strictObject({ active: UsageFigure, persisted: UsageFigure, storageBytes: UsageFigure })
export type VaultQuota = z.input<typeof VaultQuota>

export const ProofQuery = z.strictObject({
  item: z
    .union([id('doc'), id('fil')])
    .optional()
    .meta({ description: 'A document or file: its own proof of inclusion, without the others.' }),
})

const Key = z.strictObject({ kid: z.string(), x: z.string() })

/** The proof of a sealed vault, or of one item of it. */
export const Proof = z.union([
  z.strictObject({ manifest: Manifest, statement: z.string(), keys: z.array(Key) }),
  z.strictObject({
    item: SealedItem,
    index: z.int(),
    path: z.array(z.string()),
    treeSize: z.int(),
    statement: z.string(),
  }),
])
export type Proof = z.input<typeof Proof>

named({
  NewVault,
  VaultChange,
  Vault,
  VaultDocument,
  VaultFile,
  SealedItem,
  Manifest,
  RunningManifest,
  VaultState,
  NewDocument,
  NewVaultEvent,
  VaultEvent,
  ExtendRequest,
  SealRequest,
  VaultQuota,
  PublishedKey: Key,
  InclusionProof: Proof,
})
