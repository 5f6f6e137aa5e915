import type { PublicPage } from './server.ts'

/** An Ed25519 public key: its name, and its 32 bytes in base64url. */
export interface PublicKey {
  readonly kid: string
  readonly x: string
}

/**
 * The name that a signature of the service carries: a DID that anybody resolves over the web, and the key in it. Source:
 * did:web, section "Create (Register)": a port is written `%3A`, a path with colons.
 */
export function keyIdOf(baseUrl: string, kid: string): string {
  return `${didOf(baseUrl)}#${kid}`
}

function didOf(baseUrl: string): string {
  const { host, pathname } = new URL(baseUrl)
  const path = pathname.split('/').filter((part) => part !== '')
  return ['did:web', encodeURIComponent(host), ...path.map(encodeURIComponent)].join(':')
}

/** The keys that the service signs with, retired ones too, as a JSON Web Key Set and as the document of its DID. */
export function keySetPages(baseUrl: string, keys: readonly PublicKey[]): PublicPage[] {
  const jwks = keys.map(({ kid, x }) => ({ kty: 'OKP', crv: 'Ed25519', x, kid, use: 'sig', alg: 'EdDSA' }))
  const did = didOf(baseUrl)
  const methods = jwks.map(({ kty, crv, x, kid }) => ({
    id: `${did}#${kid}`,
    type: 'JsonWebKey2020',
    controller: did,
    publicKeyJwk: { kty, crv, x },
  }))
  const document = {
    '@context': ['https://www.w3.org/ns/did/v1', 'https://w3id.org/security/suites/jws-2020/v1'],
    id: did,
    verificationMethod: methods,
    assertionMethod: methods.map(({ id }) => id),
  }
  const didPage = pageOf('application/did+json', document)
  return [
    { path: '/.well-known/jwks.json', answer: pageOf('application/jwk-set+json', { keys: jwks }) },
    { path: '/.well-known/did.json', answer: didPage },
    // Where the base address has a path, the DID's document stands under that path and not under /.well-known.
    { path: '/did.json', answer: didPage },
  ]
}

function pageOf(type: string, document: unknown): PublicPage['answer'] {
  const body = JSON.stringify(document)
  return () => ({ status: 200, headers: { 'content-type': type, 'cache-control': 'public, max-age=300' }, body })
}
