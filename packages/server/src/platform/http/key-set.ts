import { failPlatform } from '../errors.ts'
import type { PublicPage } from './server.ts'

/** An Ed25519 public key: its id, and its 32 bytes in base64url. */
interface PublicKey {
  readonly kid: string
  readonly x: string
}

/**
 * The key id of the service's signatures: a DID that anyone can resolve over the web, with the key as fragment. Source: did:web, section
 * "Create (Register)": a port is written `%3A`, a path with colons.
 */
export function keyIdOf(baseUrl: string, kid: string): string {
  return `${didOf(baseUrl)}#${kid}`
}

function didOf(baseUrl: string): string {
  const { host, pathname } = new URL(baseUrl)
  const path = pathname.split('/').filter((part) => part !== '')
  return ['did:web', encodeURIComponent(host), ...path.map(encodeURIComponent)].join(':')
}

/** The service's signing keys, those of all its statements, and those to a tenant. */
export interface KeySets {
  publicKeys(): Promise<readonly PublicKey[]>
  publicKeysTo(tenant: KeySetTenant): Promise<readonly PublicKey[]>
}

interface KeySetTenant {
  readonly organisationId: string
  readonly environment: string
}

/**
 * The service's signing keys, including retired ones, as a JSON Web Key Set and as its DID document. Read for each request. With the query
 * `?organisation=…&environment=…` the key set has the keys that sign deliveries to that tenant.
 */
export function keySetPages(baseUrl: string, keys: KeySets): PublicPage[] {
  const listKeys = () => keys.publicKeys()
  const didPage = pageOf('application/did+json', async () => didDocument(didOf(baseUrl), await listKeys()))
  const keySet = pageOf('application/jwk-set+json', async (url) => {
    const tenant = tenantOf(url)
    return { keys: (await (tenant === undefined ? listKeys() : keys.publicKeysTo(tenant))).map(jwkOf) }
  })
  return [
    { path: '/.well-known/jwks.json', respond: keySet, crossOrigin: true },
    { path: '/.well-known/did.json', respond: didPage, crossOrigin: true },
    // If the base URL has a path, the DID document is under that path and not under /.well-known.
    { path: '/did.json', respond: didPage, crossOrigin: true },
  ]
}

/** Returns the tenant that a query names, or undefined if it names none. A half or malformed name is refused: other keys would not be what was meant. */
function tenantOf(url: string): KeySetTenant | undefined {
  const query = new URLSearchParams(url.split('?')[1] ?? '')
  const [organisations, environments] = [query.getAll('organisation'), query.getAll('environment')]
  if (organisations.length === 0 && environments.length === 0) return undefined
  const [organisationId = '', environment = ''] = [organisations.join(), environments.join()]
  if (!/^org_[0-9a-z]{26}$/.test(organisationId) || !['test', 'live'].includes(environment))
    throw failPlatform('bad-request', { detail: 'Name one organisation and its environment, test or live.' })
  return { organisationId, environment }
}

function jwkOf({ kid, x }: PublicKey) {
  return { kty: 'OKP', crv: 'Ed25519', x, kid, use: 'sig', alg: 'EdDSA' }
}

function didDocument(did: string, keys: readonly PublicKey[]) {
  const methods = keys.map(jwkOf).map(({ kty, crv, x, kid }) => ({
    id: `${did}#${kid}`,
    type: 'JsonWebKey2020',
    controller: did,
    publicKeyJwk: { kty, crv, x },
  }))
  return {
    '@context': ['https://www.w3.org/ns/did/v1', 'https://w3id.org/security/suites/jws-2020/v1'],
    id: did,
    verificationMethod: methods,
    assertionMethod: methods.map(({ id }) => id),
  }
}

function pageOf(type: string, document: (url: string) => Promise<unknown>): PublicPage['respond'] {
  const headers = { 'content-type': type, 'cache-control': 'public, max-age=300' }
  return async (_, { url }) => ({ status: 200, headers, body: JSON.stringify(await document(url)) })
}
