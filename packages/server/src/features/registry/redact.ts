import type { RouteParam } from './schema.ts'

/** Found anywhere in a name, once everything but letters and digits is left out of it. */
const telling =
  /auth|cookie|apikey|accesskey|privatekey|secretkey|signingkey|token|secret|passw|passphrase|passcode|signature|credential|session|jwt|bearer|mnemonic|payment|csrf|xsrf/

/** Found as a word of a name: too short, or too common in other words, to be looked for anywhere. */
const tellingWord = /^(?:key|sig|pin|otp|pwd|pass|sid|seed|hmac|mac|cvc|cvv|pan|ssn)$/

/** Values that are credentials by their own look, whatever the name over them. */
const tellingValue =
  /^(?:bearer|basic|digest|payment)\s|^eyJ[\w-]{8,}\.|(?:svc|sk|pk|rk)_(?:test|live)_|whsec_|-----BEGIN/i

/**
 * Whether a value under this name may be a credential: better one example too few than a secret in the registry. Case, separators and
 * compatible forms of letters (NFKC) make no difference.
 */
export function isCredentialName(name: string): boolean {
  const plain = name.normalize('NFKC')
  const words = plain
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
  return telling.test(words.join('')) || words.some((word) => tellingWord.test(word))
}

/** The parameter as it may be stored: without its example where name or value speak of a credential. */
export function redacted({ example, ...param }: RouteParam): RouteParam {
  const isSecret = isCredentialName(param.name) || (typeof example === 'string' && tellingValue.test(example.trim()))
  return example === undefined || isSecret ? param : { ...param, example }
}
