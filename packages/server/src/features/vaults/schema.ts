import { durationSecondsMax, parseDuration, sealLimits } from '@purser/protocol'
import { z } from 'zod'
import type { Id } from '../../platform/ids.ts'
import { id } from '../../platform/ids.ts'
import { named } from '../../platform/named.ts'
import {
  AnyJsonObject,
  CreatedAt,
  FreeForm,
  Instant,
  Metadata,
  PageQuery,
  StoredMetadata,
  text,
} from '../../platform/wire.ts'
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
  'must have no number that a double-precision float cannot express',
)

function hasFiniteNumbers(value: unknown): boolean {
  if (typeof value === 'number') return Number.isFinite(value)
  return typeof value !== 'object' || value === null || Object.values(value).every(hasFiniteNumbers)
}

export const NewVault = z.strictObject({
  description: text(2_000).optional().describe('A description of your own.'),
  ttl: Ttl.optional().describe(
    'Time to live, such as `30m`, `24h` or `7d`; a vault’s own `ttl` is the instant of its end. The plan has a default and a maximum.',
  ),
  metadata: Metadata.optional(),
})
export type NewVault = z.output<typeof NewVault>

/** Omitted fields stay unchanged. */
export const VaultChange = z.strictObject({
  description: text(2_000).nullable().optional().meta({ description: 'A new description; null removes it.' }),
  metadata: Metadata.optional().meta({ description: 'Replaces the existing metadata.' }),
})
export type VaultChange = z.output<typeof VaultChange>

const vaultStatuses = ['active', 'sealed', 'persisted'] as const
export const VaultStatus = z.enum(vaultStatuses)
export type VaultStatus = z.output<typeof VaultStatus>

/** A vault. `ttl` is the instant at which it expires; null once it is persisted. */
export const Vault = z.strictObject({
  id: id('vlt'),
  organisationId: id('org'),
  status: VaultStatus.describe(
    '`sealed` takes no more writes; `persisted` no longer expires. A vault that is both is `sealed`.',
  ),
  createdAt: CreatedAt,
  description: z.string().nullable().meta({ description: 'Null when none was given.' }),
  metadata: StoredMetadata,
  sessionId: id('sess')
    .nullable()
    .meta({ description: 'The session that created it; null if it was created without one.' }),
  ttl: Instant.nullable().describe(
    'The instant at which the vault expires and is deleted (requests have a duration); null once it is persisted.',
  ),
  summary: z.string().nullable().describe('Summary of the seal; null until it is sealed or if none was given.'),
  sealedAt: Instant.nullable().describe('When the vault was sealed; null until then.'),
  persistedAt: Instant.nullable().describe('When the vault was persisted; null until then.'),
  manifestHash: z
    .string()
    .nullable()
    .meta({ description: 'SHA-256 of the manifest, in hex; null until it is sealed.' }),
})
export type Vault = z.input<typeof Vault>

export const VaultParams = z.strictObject({ id: id('vlt') })
export const DocumentParams = z.strictObject({ id: id('vlt'), docId: id('doc') })
export const VaultQuery = PageQuery.extend({ status: VaultStatus.optional().describe('Only vaults in this state.') })

/** A document. `size` and `sha256` cover its data as canonical JSON (RFC 8785) in UTF-8. */
export const VaultDocument = z.strictObject({
  id: id('doc'),
  name: z.string().describe('Name of the document.'),
  data: AnyJsonObject.optional().meta({
    description: 'Left out of a vault’s own record beyond 256 KiB in all; the document’s address has it.',
  }),
  size: z.int().describe('Size of the data as canonical JSON (RFC 8785), in bytes.'),
  sha256: z.string().describe('SHA-256 of the canonical JSON, in hex.'),
  createdAt: CreatedAt,
})
export type VaultDocument = z.input<typeof VaultDocument>

export const VaultFile = z.strictObject({
  id: id('fil'),
  name: z.string().describe('Name of the file.'),
  mimeType: z.string().describe('Media type of the file.'),
  size: z.int().describe('Size in bytes.'),
  sha256: z.string().describe('SHA-256 of the bytes, in hex.'),
  url: z.url().meta({
    description: 'A link that needs no header, valid until the vault expires, or for 24 hours if it is persisted.',
  }),
  createdAt: CreatedAt,
})
export type VaultFile = z.input<typeof VaultFile>

const SealedItem = z.strictObject({
  kind: z.enum(['document', 'file']).describe('Whether it is a document or a file.'),
  id: z.string().describe('Id of the document or file.'),
  name: z.string().describe('Name of the item.'),
  mimeType: z.string().optional().describe('Media type of a file.'),
  size: z.int().describe('Size in bytes.'),
  sha256: z.string().describe('SHA-256 of the content, in hex.'),
})

/** The contents of a vault when it was sealed: see `SealManifest` in the protocol package. */
export const Manifest = z.strictObject({
  version: z.literal(1).describe('Version of this format.'),
  vaultId: id('vlt'),
  organisationId: id('org'),
  summary: z.string().nullable().describe('Summary of the seal; null if none was given.'),
  sealedAt: z.string().describe('When the vault was sealed.'),
  items: z.array(SealedItem).describe('Every document and file of the vault.'),
  eventsHead: z
    .strictObject({
      count: z.int().describe('Number of events.'),
      hash: z.string().describe('SHA-256 that covers every event, in hex.'),
    })
    .describe('The events of the vault: their number, and one hash over all.'),
  payment: z
    .record(z.string(), z.unknown())
    .nullable()
    .describe('Receipt of the payment that the vault came with; null without one.'),
})
export type Manifest = z.output<typeof Manifest>

/** The manifest that a seal would sign now: `Manifest` without the time of sealing and without a signature. */
const RunningManifest = Manifest.extend({ sealedAt: z.null().describe('Null: the vault is not sealed.') })
export type RunningManifest = z.output<typeof RunningManifest>

export const VaultState = Vault.extend({
  documents: z.array(VaultDocument).describe('Documents of the vault.'),
  files: z.array(VaultFile).describe('Files of the vault.'),
  eventCount: z.int().describe('Number of events of the vault.'),
  manifest: z.union([Manifest, RunningManifest]).meta({
    description: 'The sealed manifest; before the seal, the manifest that a seal would sign now, with `sealedAt` null.',
  }),
})
export type VaultState = z.input<typeof VaultState>

/** Most bytes of a document's data as canonical JSON: 1 MB is 2^20 bytes. */
export const documentBytesMax = 2 ** 20

export const NewDocument = z.strictObject({
  name: text(255, 1).describe('Name of the document.'),
  data: JsonData.describe('The JSON object to store, at most 1 MiB.'),
})
export type NewDocument = z.output<typeof NewDocument>

const systemEvents = ['document.added', 'file.added', 'file.deleted']

/** The name of a caller's event. Names of the service's own events are reserved, since readers stop at `vault.sealed`. */
const EventName = text(128, 1).refine(
  (name) => !name.startsWith('vault.') && !systemEvents.includes(name),
  `must not begin with "vault." nor be ${systemEvents.join(', ')}, which the service itself emits`,
)

/** The payload of an event, bounded as metadata is, since every open stream sends it. */
const EventPayload = FreeForm.refine(
  hasFiniteNumbers,
  'must have no number that a double-precision float cannot express',
)

export const NewVaultEvent = z.strictObject({
  event: EventName.describe('Name of the event. Names of the service, such as `vault.sealed`, are reserved.'),
  payload: EventPayload.optional().describe('Content of the event, at most 16 KiB of JSON.'),
})
export type NewVaultEvent = z.output<typeof NewVaultEvent>

/** An event as the stream sends it. */
export const VaultEvent = z.strictObject({
  eventId: id('evt'),
  type: z.string().describe('Name of the event.'),
  vaultId: id('vlt'),
  timestamp: z.iso.datetime().describe('When the event was emitted.'),
  payload: z.record(z.string(), z.unknown()).describe('Content of the event.'),
})
export type VaultEvent = z.output<typeof VaultEvent>

export const ExtendRequest = z.strictObject({ ttl: Ttl.describe('New time to live, counted from now, such as `24h`.') })
export type ExtendRequest = z.output<typeof ExtendRequest>

export const SealRequest = z.strictObject({
  summary: text(sealLimits.summaryLengthMax).optional().describe('A summary that is sealed with the vault.'),
})
export type SealRequest = z.output<typeof SealRequest>

export const VaultQuota = z.strictObject({
  active: UsageFigure.describe('Vaults that are not persisted.'),
  persisted: UsageFigure.describe('Persisted vaults.'),
  storageBytes: UsageFigure.describe('Documents, files and emitted events.'),
})
export type VaultQuota = z.input<typeof VaultQuota>

export const ProofQuery = z.strictObject({
  item: z
    .union([id('doc'), id('fil')])
    .optional()
    .meta({ description: 'A document or file: its own proof of inclusion, without the others.' }),
})

const Key = z.strictObject({
  kid: z.string().describe('Id of the key, as the statement names it.'),
  x: z.string().describe('The public key (Ed25519), in base64url.'),
})

/** The proof of a sealed vault, or of one item of it. */
export const Proof = z.union([
  z.strictObject({
    manifest: Manifest.describe('What was sealed.'),
    statement: z.string().describe('Compact JWS (EdDSA) over the hash of the manifest and its Merkle root.'),
    keys: z.array(Key).describe('Public keys of the service.'),
  }),
  z.strictObject({
    item: SealedItem.describe('The item that is proven.'),
    index: z.int().describe('Index of the item in the manifest.'),
    path: z.array(z.string()).describe('Hashes from the item to the Merkle root (RFC 6962), in hex.'),
    treeSize: z.int().describe('Number of items in the tree.'),
    statement: z.string().describe('Compact JWS (EdDSA) over the hash of the manifest and its Merkle root.'),
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
