import type { JsonObject } from '@purser/protocol'
import type { ServiceSealPort } from '../../custody/service-seal.ts'
import type { BlobStore } from '../../files/index.ts'
import type { Call, Deps as PlatformDeps, Tenant } from '../../platform/ctx.ts'
import type { Queryable } from '../../platform/db/db.ts'
import type { Id, PaymentId } from '../../platform/ids.ts'
import { type DeclareOperation, operationFor } from '../../platform/operation.ts'
import type { EndedReaders } from '../../platform/reader.ts'
import type { DueCursors, PlanDeps, PlanName } from '../plans/index.ts'
import type { VaultDocument } from './schema.ts'
import type { VaultStreams } from './stream/streams.ts'

/** Default and longest lifetime of a vault. -1 for the longest means unlimited. */
export interface TtlBounds {
  readonly secondsDefault: number
  readonly secondsMax: number
}

/** Signs addresses that open a file without a header, and checks such signatures in constant time. */
export interface FileLinks {
  sign(link: string): string
  check(link: string, signature: string): boolean
}

/** A document of a request: its data, the canonical JSON of it, and what that is compared by. */
export interface GivenDocument {
  readonly name: string
  readonly data: Readonly<Record<string, unknown>>
  readonly content: string
  readonly size: number
  readonly sha256: string
}

/** The last organisation that the previous list of due vaults visited; undefined if the next one begins with the first. */
export interface DueVaultsPlace {
  after: string | undefined
}

/** Dependencies of the feature vaults. */
export interface Deps extends PlatformDeps, PlanDeps, ServiceSealPort {
  /** The store of the files' bytes. */
  readonly blobs: BlobStore
  readonly fileLinks: FileLinks
  /** The event streams that this process has open. */
  readonly vaultStreams: VaultStreams
  /** The place from which this process looks next for vaults whose end is due. */
  readonly dueVaultsPlace: DueVaultsPlace
  /** Notified after the commit that a vault has new events; readers read the table. Must not throw. */
  readonly vaultNews?: (vaultId: Id<'vlt'>) => void
  /** Writes documents; those of concurrent requests commit together. */
  readonly writeDocument: (ctx: Ctx, vaultId: Id<'vlt'>, given: GivenDocument) => Promise<VaultDocument>
  readonly endedReaders: EndedReaders
  /** The owner behind which the next list of blobs to delete starts. */
  readonly deletionCursors: DueCursors
  /** Bounds from the deployment's configuration that replace the plan's. */
  readonly vaultTtls?: Readonly<Partial<Record<PlanName, TtlBounds>>>
  /** Most valid tokens and unused tickets of one vault. */
  readonly vaultTokensMax: number
  /** Returns the receipt of the payment that bought a vault, as the seal stores it; undefined if there is no such payment. */
  readonly receiptForSeal?: (db: Queryable, tenant: Tenant, paymentId: PaymentId) => Promise<JsonObject | undefined>
}

/** Context of one call. */
export interface Ctx extends Deps, Call {}

export const operation: DeclareOperation<Deps> = operationFor()
