import { createPurser, PurserError } from '@purser/sdk'
import { base } from '../api/scope.ts'

const purser = createPurser({ session: {}, baseUrl: location.origin, maxRetries: 0 })

/** A key of the person's that a browser, a phone or a security key keeps. */
export interface Passkey {
  readonly id: string
  readonly name: string
  readonly createdAt: string | undefined
  /** Whether it is copied to the person's other devices. */
  readonly isSynced: boolean
}

/** The passkeys of the signed-in person, oldest first. */
export async function listPasskeys(): Promise<readonly Passkey[]> {
  const listed = await purser.request('GET', '/auth/passkey/list-user-passkeys')
  const passkeys = Array.isArray(listed) ? listed.flatMap(readPasskey) : []
  return passkeys.sort((a, b) => (a.createdAt ?? '').localeCompare(b.createdAt ?? ''))
}

function readPasskey(value: unknown): readonly Passkey[] {
  if (!isRecord(value) || typeof value.id !== 'string') return []
  const { id, name, createdAt, backedUp } = value
  return [
    {
      id,
      name: typeof name === 'string' && name !== '' ? name : 'Passkey without a name',
      createdAt: typeof createdAt === 'string' ? createdAt : undefined,
      isSynced: backedUp === true,
    },
  ]
}

/** Makes a passkey in the browser and registers it. Throws a `DOMException` where the person cancels. */
export async function addPasskey(name: string): Promise<void> {
  const options = await freshly(
    purser.request('GET', `/auth/passkey/generate-register-options?name=${encodeURIComponent(name)}`),
  )
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options as PublicKeyCredentialCreationOptionsJSON)
  const credential = await navigator.credentials.create({ publicKey })
  if (!(credential instanceof PublicKeyCredential))
    throw new DOMException('The browser did not create a passkey.', 'NotAllowedError')
  await freshly(
    purser.request('POST', '/auth/passkey/verify-registration', { body: { response: credential.toJSON(), name } }),
  )
}

export async function renamePasskey(id: string, name: string): Promise<void> {
  await purser.request('POST', '/auth/passkey/update-passkey', { body: { id, name } })
}

/** Removes a passkey. Browsers and phones keep their private key until the person deletes it there. */
export async function removePasskey(id: string): Promise<void> {
  await purser.request('POST', '/auth/passkey/delete-passkey', { body: { id } })
}

/** Whether the signed-in person has a password. */
export async function hasPassword(): Promise<boolean> {
  const listed = await purser.request('GET', '/auth/list-accounts')
  return Array.isArray(listed) && listed.some((one) => isRecord(one) && one.providerId === 'credential')
}

/** The least and the most characters of a password. */
export const passwordLength = { min: 12, max: 128 } as const

/** Changes the password and ends all other sessions. Throws `password-incorrect` if the current password is wrong. */
export async function changePassword(currentPassword: string, newPassword: string): Promise<void> {
  const body = { currentPassword, newPassword, revokeOtherSessions: true }
  try {
    await purser.request('POST', '/auth/change-password', { body })
  } catch (error) {
    if (!(error instanceof PurserError) || error.status !== 400) throw error
    throw new PurserError('The current password is wrong.', { status: 400, code: 'password-incorrect' })
  }
}

/** Sends a link, which works once within an hour, to the page where a password is chosen. */
export async function sendPasswordLink(email: string): Promise<void> {
  const redirectTo = `${location.origin}${base}/choose-password`
  await purser.request('POST', '/auth/request-password-reset', { body: { email, redirectTo } })
}

/** Sets the password with the token of a link, and ends all sessions of the person. */
export async function choosePassword(token: string, newPassword: string): Promise<void> {
  await purser.request('POST', '/auth/reset-password', { body: { token, newPassword } })
}

/** Turns the 403 of the sign-in service for an old sign-in into `fresh-authentication-required`. */
async function freshly<T>(response: Promise<T>): Promise<T> {
  try {
    return await response
  } catch (error) {
    if (!(error instanceof PurserError) || error.status !== 403) throw error
    throw new PurserError('This needs a sign-in within the last ten minutes.', {
      status: 403,
      code: 'fresh-authentication-required',
    })
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
