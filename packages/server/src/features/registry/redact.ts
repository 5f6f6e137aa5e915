import type { RouteParam } from './schema.ts'

/** Matched anywhere in a name after everything but letters and digits is removed. */
const credentialPart =
  /auth|cookie|apikey|accesskey|privatekey|secretkey|signingkey|token|secret|passw|passphrase|passcode|signature|credential|session|jwt|bearer|mnemonic|payment|csrf|xsrf/

/** Matched only as a word of a name: too short, or too common inside other words, to be matched anywhere. */
const credentialWord = /^(?:key|sig|pin|otp|pwd|pass|sid|seed|hmac|mac|cvc|cvv|pan|ssn)$/

/** Values that look like credentials, whatever their name. */
const credentialValue =
  /^(?:bearer|basic|digest|payment)\s|^eyJ[\w-]{8,}\.|(?:svc|sk|pk|rk)_(?:test|live)_|whsec_|-----BEGIN/i

/**
 * Whether a value under this name may be a credential; a missing example is better than a secret in the registry. Case,
 * separators and compatibility forms of letters (NFKC) make no difference.
 */
export function isCredentialName(name: string): boolean {
  const plain = name.normalize('NFKC')
  const words = plain
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
  return credentialPart.test(words.join('')) || words.some((word) => credentialWord.test(word))
}

/** Returns the parameter as it may be stored: without its example if the name or the value suggests a credential. */
export function redacted({ example, ...param }: RouteParam): RouteParam {
  const isSecret = isCredentialName(param.name) || (typeof example === 'string' && credentialValue.test(example.trim()))
  return example === undefined || isSecret ? param : { ...param, example }
}
