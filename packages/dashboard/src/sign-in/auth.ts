import { createPurser } from '@purser/sdk'
import { base } from '../api/scope.ts'
import { returnUrl } from './return-url.ts'

const purser = createPurser({ session: {}, baseUrl: location.origin, maxRetries: 0 })

/** Signs in with a password. Throws the service's `PurserError`. */
export async function signInWithPassword(email: string, password: string): Promise<void> {
  await purser.request('POST', '/auth/sign-in/email', { body: { email, password } })
}

/** The ways to sign in that depend on the deployment. */
export interface SignInMethods {
  readonly sendsLinks: boolean
  /** The names of its OpenID Connect issuers. */
  readonly issuers: readonly string[]
}

export async function signInMethods(): Promise<SignInMethods> {
  const methods = await purser.request('GET', '/auth/methods')
  if (typeof methods !== 'object' || methods === null) return { sendsLinks: false, issuers: [] }
  const named = 'oidc' in methods && Array.isArray(methods.oidc) ? methods.oidc : []
  return {
    sendsLinks: 'emailLink' in methods && methods.emailLink === true,
    issuers: named.filter((one): one is string => typeof one === 'string'),
  }
}

/** Returns the sign-in URL of an OpenID Connect issuer, which redirects to `to` afterwards. */
export async function issuerUrl(issuer: string, to: string): Promise<string> {
  const callbackURL = returnUrl(location.origin, to)
  const errorCallbackURL = `${location.origin}${base}/sign-in`
  const body = { provider: issuer, callbackURL, errorCallbackURL }
  const response = await purser.request('POST', '/auth/sign-in/social', { body })
  if (typeof response !== 'object' || response === null || !('url' in response) || typeof response.url !== 'string')
    throw new Error('the issuer has no address')
  return response.url
}

/** Sends an email with a single-use sign-in link. The response does not reveal whether the address has an account. */
export async function sendLink(email: string): Promise<void> {
  await purser.request('POST', '/auth/sign-in/link', { body: { email } })
}

/** Signs in with a passkey that the browser or a phone keeps. */
export async function signInWithPasskey(): Promise<void> {
  const options = await purser.request('GET', '/auth/passkey/generate-authenticate-options')
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options as PublicKeyCredentialRequestOptionsJSON)
  const credential = await navigator.credentials.get({ publicKey: { ...publicKey, userVerification: 'required' } })
  if (!(credential instanceof PublicKeyCredential)) throw new Error('No passkey was chosen.')
  await purser.request('POST', '/auth/passkey/verify-authentication', { body: { response: credential.toJSON() } })
}

/** Ends this session and goes to the sign-in page. */
export async function signOut(): Promise<void> {
  await purser.request('POST', '/auth/sign-out', { body: {} })
  location.assign(`${base}/sign-in`)
}

/** Returns the page to open after signing in. Only pages of the dashboard are accepted. */
export function afterSignIn(search: string): string {
  const to = new URLSearchParams(search).get('to') ?? base
  return /^\/dashboard(?:\/[^\\]*)?$/.test(to) ? to : base
}
