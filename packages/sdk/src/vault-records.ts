/** Usage and limit of a plan. A limit of -1 means no limit. */
interface VaultFigure {
  readonly used: number
  readonly limit: number
  /** The used part of the limit, rounded down. Null without a limit. */
  readonly percent: number | null
  readonly unlimited: boolean
}

export interface VaultQuota {
  readonly active: VaultFigure
  readonly persisted: VaultFigure
  readonly storageBytes: VaultFigure
}

export type VaultStatus = 'active' | 'sealed' | 'persisted'

/** A vault. Times are ISO 8601. `ttl` is the time at which it expires, null once it is persisted. */
export interface Vault {
  readonly id: string
  readonly organisationId: string
  readonly status: VaultStatus
  readonly createdAt: string
  readonly description: string | null
  readonly metadata: Readonly<Record<string, unknown>>
  readonly sessionId: string | null
  readonly ttl: string | null
  readonly summary: string | null
  readonly sealedAt: string | null
  readonly persistedAt: string | null
  /** SHA-256 of the manifest in hex. Null until the vault is sealed. */
  readonly manifestHash: string | null
}

/** In a vault's own record, `data` is omitted beyond 256 KiB in total; `documents.get` returns it. */
export interface VaultDocument {
  readonly id: string
  readonly name: string
  readonly data?: Readonly<Record<string, unknown>>
  readonly size: number
  readonly sha256: string
  readonly createdAt: string
}

/** `url` is an expiring link that needs no API key. */
export interface VaultFile {
  readonly id: string
  readonly name: string
  readonly mimeType: string
  readonly size: number
  readonly sha256: string
  readonly url: string | null
  readonly createdAt: string
}

/**
 * A vault with its content. `manifest` is the sealed manifest, or, before sealing, the one that a seal would freeze,
 * with `sealedAt` null.
 */
export interface VaultState extends Vault {
  readonly documents: readonly VaultDocument[]
  readonly files: readonly VaultFile[]
  readonly eventCount: number
  readonly manifest: Readonly<Record<string, unknown>>
}

export interface NewVault {
  readonly description?: string | undefined
  /** `<n>m`, `<n>h` or `<n>d`. Default: that of the plan. */
  readonly ttl?: string | undefined
  readonly metadata?: Readonly<Record<string, unknown>> | undefined
}

/** Omitted members do not change. A null description removes it. Metadata replaces all existing metadata. */
export interface VaultChange {
  readonly description?: string | null | undefined
  readonly metadata?: Readonly<Record<string, unknown>> | undefined
}

export interface NewDocument {
  readonly name: string
  readonly data: Readonly<Record<string, unknown>>
}

/** An event of a vault: one of the service, or one that was emitted. */
export interface VaultEvent {
  readonly eventId: string
  readonly type: string
  readonly vaultId: string
  readonly timestamp: string
  readonly payload: Readonly<Record<string, unknown>>
}

export interface NewVaultEvent {
  /** Up to 128 characters. Names of the service's events are reserved. */
  readonly event: string
  readonly payload?: Readonly<Record<string, unknown>> | undefined
}

/** A token that can only read one vault, its files and its stream. A secret that no later response shows. */
export interface VaultToken {
  readonly id: string
  readonly token: string
  readonly vaultId: string
  readonly expiresAt: string
}

/** A valid token or ticket, without its text. */
export interface VaultTokenRecord {
  readonly id: string
  readonly kind: 'token' | 'ticket'
  /** The API key or the account that made it. */
  readonly madeBy: string | null
  readonly expiresAt: string
  readonly createdAt: string
}

export interface NewVaultToken {
  /** Seconds, or a duration such as `1h`, at most a day. Default: an hour. Not for a ticket. */
  readonly expiresIn?: number | string | undefined
  /** `ticket`: valid for one stream, to be opened within a minute, for browsers that cannot send headers. */
  readonly kind?: 'token' | 'ticket' | undefined
}
