import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'

/** What an id_token says of a person; a member that is undefined is left out. */
export type Claims = Readonly<Record<string, unknown>>

/** An issuer of OpenID Connect (Core 1.0, authorization code with PKCE) on a free port of this machine. */
export interface OidcIssuer {
  readonly url: string
  readonly clientId: string
  readonly clientSecret: string
  /**
   * Signs in the person of an authorization request. Returns the code and the state that the browser brings back. The claims take the place of those
   * that a sound issuer would write, and `forge` has another key sign them.
   */
  consent(
    authorizationUrl: string,
    claims: Claims,
    options?: { readonly forge?: true },
  ): { readonly code: string; readonly state: string }
  /** An id_token of the issuer for its client, as a log or another party might have it. */
  idToken(claims: Claims): string
  stop(): Promise<void>
}

interface Grant {
  readonly idToken: string
  readonly challenge: string
  readonly redirectUri: string
}

/** Starts an issuer that knows one client. A code works once, with its PKCE verifier and redirect address alone. */
export async function anIssuer(): Promise<OidcIssuer> {
  const [clientId, clientSecret] = ['purser', randomBytes(16).toString('hex')]
  const [own, foreign] = [aKey(), aKey()]
  const grants = new Map<string, Grant>()
  const redeem = async (request: IncomingMessage): Promise<unknown> => {
    const form = new URLSearchParams(await text(request))
    const code = form.get('code') ?? ''
    const grant = grants.get(code)
    grants.delete(code)
    const verifier = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url')
    const isClient = form.get('client_secret') === clientSecret || isBasic(request, clientId, clientSecret)
    if (grant === undefined || !isClient || verifier !== grant.challenge) return { error: 'invalid_grant' }
    if (form.get('redirect_uri') !== grant.redirectUri) return { error: 'invalid_grant' }
    return { access_token: randomBytes(16).toString('hex'), token_type: 'Bearer', id_token: grant.idToken }
  }
  const server = createServer((request, response) => {
    const answer = async (): Promise<unknown> => {
      if (request.url === '/.well-known/openid-configuration') return discovery(url)
      if (request.url === '/keys') return { keys: [own.jwk] }
      return request.url === '/token' ? redeem(request) : { error: 'not_found' }
    }
    void answer().then((body) => {
      const isError = typeof body === 'object' && body !== null && 'error' in body
      response.writeHead(isError ? 400 : 200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the issuer has no port')
  const url = `http://127.0.0.1:${address.port}`
  return {
    url,
    clientId,
    clientSecret,
    consent(authorizationUrl, claims, { forge } = {}) {
      const request = new URL(authorizationUrl).searchParams
      const read = (name: string): string => request.get(name) ?? ''
      const seconds = Math.floor(Date.now() / 1_000)
      const sound = { iss: url, aud: clientId, nonce: read('nonce'), iat: seconds, exp: seconds + 300 }
      const code = randomBytes(16).toString('hex')
      grants.set(code, {
        idToken: (forge ? foreign : own).signed({ ...sound, ...claims }, own.jwk.kid),
        challenge: read('code_challenge'),
        redirectUri: read('redirect_uri'),
      })
      return { code, state: read('state') }
    },
    idToken(claims) {
      const seconds = Math.floor(Date.now() / 1_000)
      return own.signed({ iss: url, aud: clientId, iat: seconds, exp: seconds + 300, ...claims }, own.jwk.kid)
    },
    stop: () => new Promise((resolve) => server.close(() => resolve()).closeAllConnections()),
  }
}

function discovery(url: string) {
  return {
    issuer: url,
    authorization_endpoint: `${url}/authorize`,
    token_endpoint: `${url}/token`,
    jwks_uri: `${url}/keys`,
    response_types_supported: ['code'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['RS256'],
    code_challenge_methods_supported: ['S256'],
  }
}

function isBasic({ headers }: IncomingMessage, clientId: string, clientSecret: string): boolean {
  return headers.authorization === `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}`
}

function aKey() {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const kid = randomBytes(8).toString('hex')
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid, use: 'sig', alg: 'RS256' }
  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  return {
    jwk,
    signed(claims: Claims, named: string): string {
      const body = `${part({ alg: 'RS256', typ: 'JWT', kid: named })}.${part(claims)}`
      return `${body}.${sign('sha256', Buffer.from(body), privateKey).toString('base64url')}`
    },
  }
}
