/** The subject of an operation. An API key may be limited to some subjects. */
export const scopes = ['read', 'payments', 'vaults', 'wallets', 'money', 'webhooks', 'organisation'] as const

/** Roles of a person in an organisation, from the one that may do everything to the one that may only read. */
export const roles = ['owner', 'admin', 'member', 'viewer'] as const

export type Scope = (typeof scopes)[number]

export type Role = (typeof roles)[number]
