import { z } from 'zod'
import { requireFresh } from '../../platform/access.ts'
import { failPlatform } from '../../platform/errors.ts'
import { newRequestId, problemResponse, type RawResponse } from '../../platform/http/call.ts'
import { type People, refuseOtherOrigin } from '../../platform/http/identify.ts'
import { readJson, shapeOf } from '../../platform/http/json.ts'
import { validationProblem } from '../../platform/http/problem.ts'
import type { PageRequest, PublicPage } from '../../platform/http/server.ts'
import type { AccountId } from '../../platform/ids.ts'
import { parseUrl } from '../../platform/parse-url.ts'
import { unstorableText, unstorableTexts } from '../../platform/wire.ts'
import { cookiePrefixOf, openSignedCookie, ownCookies } from './cookie.ts'
import { knownBrowserCookieOf } from './known-browser.ts'
import type { Deps } from './ports.ts'
import { createSignInLimit, type SignInLimit } from './sign-in-limits.ts'
import { addressHeader, type SignInOptions } from './sign-in-options.ts'
import { type SignInPath, signInPathOf } from './sign-in-paths.ts'
import { countPasskeys } from './store.ts'

/** Most characters of a page of the dashboard. Anybody begins a sign-in, and its pages are stored until it ends. */
const pageUrlLengthMax = 512

const PageUrl = z
  .string()
  .refine(
    (url) => url.length <= pageUrlLengthMax && (/^\/(?![/\\])/.test(url) || parseUrl(url) !== undefined),
    'must be a short URL',
  )
const ShortText = z.string().max(512)

/** The members of a request that lead to a page, and the name of a passkey or a person. better-auth limits the length of none. */
const bounded = {
  callbackURL: PageUrl.optional(),
  redirectTo: PageUrl.optional(),
  errorCallbackURL: PageUrl.optional(),
  newUserCallbackURL: PageUrl.optional(),
  name: z.string().max(200).optional(),
}

/** The body of every path: what a passkey signs, and short values. The id of a credential has at most 1,023 bytes (WebAuthn, section 5.8.3). */
const Body = z
  .object({ ...bounded, response: z.looseObject({ id: z.string().max(1_364) }).optional() })
  .catchall(z.union([ShortText, z.number(), z.boolean(), z.null()]))
/** A parameter of the query. What an issuer returns may be long. */
const Parameter = z.looseObject({ ...bounded, context: ShortText.optional() })

/** The body of a path that starts a sign-in at an issuer. */
const IssuerBody = z.strictObject({
  provider: z.string().max(64),
  callbackURL: z.string().max(pageUrlLengthMax).optional(),
  errorCallbackURL: z.string().max(pageUrlLengthMax).optional(),
})

/** Most passkeys of a person. */
const passkeysMax = 20

/** better-auth's handler of requests. */
export type AuthHandler = (request: Request) => Promise<Response>

interface Mounted {
  readonly handler: AuthHandler
  readonly people: People
  readonly options: Pick<SignInOptions, 'secret' | 'issuers' | 'sendMail' | 'isSignUpOpen'>
}

/** The largest request is a passkey's: its attestation has a chain of certificates, a few kilobytes, in about 20 values. */
const signInBytesMax = 32_768
/** Most names and values of a body: each is compared with a schema before the limits of the address. */
const signInNodesMax = 128

/** The pages under `/auth`, where people sign in and out. */
export function signInPages(deps: Deps, mounted: Mounted): PublicPage[] {
  const { secret } = mounted.options
  const limit = createSignInLimit(deps.clock, { cookieName: knownBrowserCookieOf(deps.baseUrl), secret })
  const respond = async (_: unknown, request: PageRequest): Promise<RawResponse> => {
    try {
      return await respondToSignIn(deps, mounted, limit, request)
    } catch (error) {
      return problemResponse({ ...deps, requestId: newRequestId(deps) }, error)
    }
  }
  return [
    { path: '/auth/methods', respond: () => methodsResponse(mounted.options) },
    { path: '/auth/*', respond, getChanges: true },
    { path: '/auth/*', method: 'POST', respond, bodyBytesMax: signInBytesMax },
  ]
}

/** Returns the ways of signing in that this deployment offers, for the sign-in page. */
function methodsResponse({ issuers, sendMail, isSignUpOpen }: Mounted['options']): RawResponse {
  const methods = {
    password: true,
    passkey: true,
    emailLink: sendMail !== undefined,
    oidc: issuers.map(({ name }) => name),
    signUp: isSignUpOpen ? 'open' : 'closed',
  }
  return {
    status: 200,
    headers: { 'content-type': 'application/json; charset=utf-8' },
    body: JSON.stringify(methods),
  }
}

async function respondToSignIn(
  deps: Pick<Deps, 'baseUrl' | 'clock' | 'db' | 'withSemaphores' | 'witness'>,
  { handler, people, options }: Mounted,
  limit: SignInLimit,
  request: PageRequest,
): Promise<RawResponse> {
  const { url, headers, address } = request
  const path = signInPathOf(request.method, url.slice('/auth'.length).split('?')[0] ?? '')
  if (path === undefined) throw failPlatform('not-found')
  const sent = readSent(deps, people, path, request)
  const isOwn = path.changes || path.registers || path.endsBy === 'session'
  const cookie = isOwn ? people.cookieOf(headers.cookie) : undefined
  const person = cookie === undefined ? undefined : await people.find(cookie, undefined)
  if (path.fresh) requireFresh({ person, clock: deps.clock })
  const queues = limit({ path, address, cookies: headers.cookie, accountId: person?.accountId, sent })
  const response = await deps.withSemaphores(queues, async () => {
    if (person !== undefined && path.registers) await refusePasskey(deps.db, person.accountId)
    return handler(passedOn(deps, request))
  })
  if (path.endsBy === undefined) return rawResponse(response)
  const isSigned = cookie !== undefined && openSignedCookie(cookie, options.secret) !== undefined
  if (response.ok && (person !== undefined || path.endsBy === 'token')) await deps.witness.cover()
  else if (isSigned) await deps.witness.coverRepetition()
  return rawResponse(response)
}

/** Returns the parsed body; undefined without one. Refuses a request of another page, and one that better-auth must not get. */
function readSent(
  { baseUrl }: Pick<Deps, 'baseUrl'>,
  people: Pick<People, 'origin'>,
  path: SignInPath,
  { method, url, headers, body }: PageRequest,
): unknown {
  if (method !== 'GET') refuseForeign(path.path === '/link' ? new URL(baseUrl) : people, headers, body)
  else if (path.opens) refuseUnseen(headers)
  const sent = body.length === 0 ? undefined : readSignIn(body)
  refuseUnstorable(url, sent)
  refuseLong(url, sent)
  const begun = path.issuer ? IssuerBody.safeParse(sent) : undefined
  if (begun?.success === false) throw validationProblem(begun.error.issues)
  return sent
}

/** Returns the request for better-auth, without the headers of the connection and with the service's own cookies only. */
function passedOn({ baseUrl }: Pick<Deps, 'baseUrl'>, { method, url, headers, body, address }: PageRequest): Request {
  const fields = new Headers()
  const kept = { ...headers, cookie: ownCookies(headers.cookie, cookiePrefixOf(baseUrl)) }
  for (const [name, value] of Object.entries(kept))
    if (value !== undefined && !hopHeaders.test(name))
      fields.append(name, name === 'user-agent' ? value.slice(0, userAgentLengthMax) : value)
  fields.set(addressHeader, address)
  const init = { method, headers: fields, ...(body.length > 0 && { body: Buffer.from(body) }) }
  return new Request(`${baseUrl}${url}`, init)
}

async function refusePasskey(db: Deps['db'], accountId: AccountId): Promise<void> {
  if ((await countPasskeys(db, accountId)) < passkeysMax) return
  const message = `a person has at most ${passkeysMax} passkeys; remove one that is not used`
  throw failPlatform('validation-error', { errors: [{ path: '', message }] })
}

function readSignIn(body: Uint8Array): unknown {
  const shape = shapeOf(body)
  if (shape.nodes <= signInNodesMax) return readJson(body, shape)
  throw failPlatform('validation-error', { errors: [{ path: '', message: 'must have fewer members' }] })
}

/** Most characters of `User-Agent` in the row of a session. Browsers send fewer than 300. */
const userAgentLengthMax = 512

/** Headers of the connection, which are not forwarded. */
const hopHeaders = /^(host|connection|content-length|transfer-encoding|keep-alive|upgrade|expect|x-forwarded-.*)$/

/**
 * Refuses requests of other origins: a foreign page must neither use the visitor's session nor sign the visitor in to another account. The page that
 * confirms a link is of the service's own origin, all others are of the dashboard's.
 */
function refuseForeign(own: Pick<People, 'origin'>, headers: PageRequest['headers'], body: Uint8Array): void {
  if (headers.origin !== undefined || headers.cookie !== undefined) refuseOtherOrigin(own, headers.origin)
  const type = headers['content-type']?.split(';')[0]?.trim().toLowerCase()
  if (body.length > 0 && type !== 'application/json') throw failPlatform('unsupported-media-type')
}

/**
 * Refuses a sign-in address that is not opened as a page: a foreign page must not sign its visitor in to another account by an image, a frame or a
 * script, and a prefetch must not use a link up. Browsers send the destination of each request, and pages cannot change it (Fetch Metadata;
 * Sec-Purpose of Fetch, section 3.7).
 */
function refuseUnseen(headers: PageRequest['headers']): void {
  const { 'sec-fetch-dest': destination = 'document', 'sec-purpose': purpose = '' } = headers
  if (destination === 'document' && !/^prefetch\b/.test(purpose)) return
  throw failPlatform('origin-not-allowed', { detail: 'Open this address as a page in a browser to sign in.' })
}

/** As for every operation: better-auth would fail at the database. */
function refuseUnstorable(url: string, sent: unknown): void {
  const query = Object.fromEntries(new URL(url, 'http://localhost').searchParams)
  const errors = unstorableTexts([query, sent]).map(([, ...path]) => ({
    path: `/${path.map(String).join('/')}`,
    message: unstorableText,
  }))
  if (errors.length > 0) throw failPlatform('validation-error', { errors })
}

/** Refuses long values: better-auth would parse them as URLs, write them to the log, or store them. */
function refuseLong(url: string, sent: unknown): void {
  const parameters = [...new URL(url, 'http://localhost').searchParams].map(([name, value]) => ({ [name]: value }))
  const results = [
    ...parameters.map((one) => Parameter.safeParse(one)),
    ...(sent === undefined ? [] : [Body.safeParse(sent)]),
  ]
  for (const { error } of results) if (error !== undefined) throw validationProblem(error.issues)
}

async function rawResponse(response: Response): Promise<RawResponse> {
  const headers: Record<string, string> = { 'referrer-policy': 'no-referrer' }
  for (const [name, value] of response.headers) if (name !== 'set-cookie') headers[name] = value
  const text = await response.text()
  const isJson = headers['content-type']?.startsWith('application/json') === true
  const body = isJson && text !== '' ? JSON.stringify(withoutTokens(JSON.parse(text))) : text
  return { status: response.status, headers, body, cookies: response.headers.getSetCookie() }
}

/** A session's token is for the cookie alone, where no script of a page reads it. */
function withoutTokens(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, inner]) =>
      name === 'token' ? [] : [[name, name === 'session' ? withoutTokens(inner) : inner]],
    ),
  )
}
