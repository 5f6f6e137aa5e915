import type { PostgresPool } from 'kysely'
import type { Deps } from './ports.ts'

export type SignInDeps = Pick<Deps, 'db' | 'clock' | 'random' | 'log' | 'baseUrl'>

/** The header in which the HTTP server passes the caller's address to better-auth. One that a caller sends is overwritten. */
export const addressHeader = 'x-purser-address'

/** The ways in which people sign in to this deployment. */
export interface SignInOptions {
  /** The secret of better-auth's signatures: at least 32 random bytes, as text. */
  readonly secret: string
  readonly pool: PostgresPool
  readonly dashboardUrl: string
  /** Whether people without an account or an invitation may sign up. */
  readonly isSignUpOpen: boolean
  readonly issuers: readonly OidcIssuer[]
  /** Undefined where no SMTP server is configured. */
  readonly sendMail: SendMail | undefined
}

/** An issuer of OpenID Connect that people may sign in with. */
export interface OidcIssuer {
  /** In lower case: part of the redirect address `{BASE_URL}/auth/callback/{name}`. */
  readonly name: string
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: string
}

/** Sends one e-mail as plain text. */
export type SendMail = (mail: { readonly to: string; readonly subject: string; readonly text: string }) => Promise<void>
