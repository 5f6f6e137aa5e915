import { createPurser } from '@purser/sdk'
import { base } from '../api/scope.ts'

const purser = createPurser({ session: {}, baseUrl: location.origin, maxRetries: 0 })

/** Signs in with a password. Throws what the service answers. */
export async function signInWithPassword(email: string, password: string): Promise<void> {
  await purser.request('POST', '/auth/sign-in/email', { body: { email, password } })
}

/** Whether this deployment sends links by email. */
export async function sendsLinks(): Promise<boolean> {
  const methods = await purser.request('GET', '/auth/methods')
  return typeof methods === 'object' && methods !== null && 'emailLink' in methods && methods.emailLink === true
}

/** Has a link sent that signs in once. Answers alike whether or not somebody has that address. */
export async function sendLink(email: string): Promise<void> {
  await purser.request('POST', '/auth/sign-in/link', { body: { email } })
}

/** Signs in with a passkey that the browser or a phone keeps. */
export async function signInWithPasskey(): Promise<void> {
  const options = await purser.request('GET', '/auth/passkey/generate-authenticate-options')
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options as PublicKeyCredentialRequestOptionsJSON)
  const credential = await navigator.credentials.get({ publicKey })
  if (!(credential instanceof PublicKeyCredential)) throw new Error('No passkey was chosen.')
  await purser.request('POST', '/auth/passkey/verify-authentication', { body: { response: credential.toJSON() } })
}

/** Ends this session and goes to the sign-in page. */
export async function signOut(): Promise<void> {
  await purser.request('POST', '/auth/sign-out', { body: {} })
  location.assign(`${base}/sign-in`)
}

/** Where to go after signing in: only ever a page of the dashboard. */
export function afterSignIn(search: string): string {
  const to = new URLSearchParams(search).get('to') ?? base
  return /^\/dashboard(?:\/[^\\]*)?$/.test(to) ? to : base
}
