/** What a plan allows; a limit of -1 means that there is none. */
export interface VaultFigure {
  readonly used: number
  readonly limit: number
}

export interface VaultQuota {
  readonly active: VaultFigure
  readonly persisted: VaultFigure
  readonly storageBytes: VaultFigure
}

export type VaultStatus = 'active' | 'sealed' | 'persisted'

/** A vault. Times are ISO 8601; `ttl` is the moment from which it is gone, null once it is persisted. */
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
  /** SHA-256 of the manifest in hex; null until the vault is sealed. */
  readonly manifestHash: string | null
}

/** `data` is left out of a vault's own record beyond 256 KiB in all; `documents.get` has it. */
export interface VaultDocument {
  readonly id: string
  readonly name: string
  readonly data?: Readonly<Record<string, unknown>>
  readonly size: number
  readonly sha256: string
  readonly createdAt: string
}

/** `url` is a link that needs no key and expires. */
export interface VaultFile {
  readonly id: string
  readonly name: string
  readonly mimeType: string
  readonly size: number
  readonly sha256: string
  readonly url: string | null
  readonly createdAt: string
}

/** A vault with all that it holds; `manifest` is what the seal froze, and before it what a seal would freeze, with `sealedAt` null. */
export interface VaultState extends Vault {
  readonly documents: readonly VaultDocument[]
  readonly files: readonly VaultFile[]
  readonly eventCount: number
  readonly manifest: Readonly<Record<string, unknown>>
}

export interface NewVault {
  readonly description?: string | undefined
  /** `<n>m`, `<n>h` or `<n>d`; the plan's default when left out. */
  readonly ttl?: string | undefined
  readonly metadata?: Readonly<Record<string, unknown>> | undefined
}

/** What is left out stays as it is; null takes the description away, and metadata takes the place of all that was there. */
export interface VaultChange {
  readonly description?: string | null | undefined
  readonly metadata?: Readonly<Record<string, unknown>> | undefined
}

export interface NewDocument {
  readonly name: string
  readonly data: Readonly<Record<string, unknown>>
}

/** Something that happened in a vault: the service's own events and those that were emitted. */
export interface VaultEvent {
  readonly eventId: string
  readonly type: string
  readonly vaultId: string
  readonly timestamp: string
  readonly payload: Readonly<Record<string, unknown>>
}

export interface NewVaultEvent {
  /** Up to 128 characters; the service's own names are taken. */
  readonly event: string
  readonly payload?: Readonly<Record<string, unknown>> | undefined
}

/** Reads one vault, its files and its stream, and nothing else. A secret, shown in this answer alone. */
export interface VaultToken {
  readonly token: string
  readonly vaultId: string
  readonly expiresAt: string
}

export interface NewVaultToken {
  /** Seconds, or a duration such as `1h`: an hour when left out, a day at most. Not for a ticket. */
  readonly expiresIn?: number | string | undefined
  /** `ticket`: opens one stream within a minute, for browsers that cannot send headers. */
  readonly kind?: 'token' | 'ticket' | undefined
}
