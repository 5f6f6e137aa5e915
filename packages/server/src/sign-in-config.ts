import type { ConfigFault } from './platform/config-fault.ts'

/** The sign-in settings in the environment. */
export interface SignInSettings {
  readonly isSignUpOpen: boolean
  readonly issuers: readonly {
    readonly name: string
    readonly issuer: string
    readonly clientId: string
    readonly clientSecret: string
  }[]
  /** The mail server and the sender of e-mail; undefined: one-time links come from the operator alone. */
  readonly smtp: { readonly url: string; readonly from: string } | undefined
}

type Env = Readonly<Record<string, string | undefined>>

/** Reads how people sign in and adds every fault. */
export function readSignIn(env: Env, faults: ConfigFault[]): SignInSettings {
  const { SIGN_UP: signUp = '' } = env
  if (!['', 'open', 'closed'].includes(signUp))
    faults.push({ name: 'SIGN_UP', fault: 'is not usable', how: 'set it to open or closed, or leave it out' })
  return { isSignUpOpen: signUp === 'open', issuers: readIssuers(env, faults), smtp: readSmtp(env, faults) }
}

function readSmtp(env: Env, faults: ConfigFault[]): SignInSettings['smtp'] {
  const { SMTP_URL: url = '', SMTP_FROM: from = '' } = env
  if (url === '' && from === '') return undefined
  if (!/^smtps?:\/\/./.test(url) || !URL.canParse(url))
    faults.push({ name: 'SMTP_URL', fault: 'is not usable', how: 'set it to smtps://user:password@host:465' })
  if (!/^[^\s@<>]+@[^\s@<>]+$/.test(from))
    faults.push({ name: 'SMTP_FROM', fault: 'is not usable', how: 'set it to the sender address of emails' })
  return { url, from }
}

/** `OIDC_PROVIDERS=google,okta`, and of each `OIDC_<NAME>_ISSUER`, `OIDC_<NAME>_CLIENT_ID` and `OIDC_<NAME>_CLIENT_SECRET`. */
function readIssuers(env: Env, faults: ConfigFault[]): SignInSettings['issuers'] {
  const names = (env.OIDC_PROVIDERS ?? '').split(',').flatMap((part) => (part.trim() === '' ? [] : [part.trim()]))
  if (names.some((name) => !/^[a-z][a-z0-9-]{0,30}$/.test(name)) || new Set(names).size < names.length)
    faults.push({
      name: 'OIDC_PROVIDERS',
      fault: 'is not usable',
      how: 'list different names in lower case, separated by commas, such as google,okta',
    })
  return names.map((name) => {
    const read = (part: string, how: string, fits: (value: string) => boolean): string => {
      const variable = `OIDC_${name.toUpperCase().replaceAll('-', '_')}_${part}`
      const value = env[variable] ?? ''
      if (!fits(value)) faults.push({ name: variable, fault: value === '' ? 'is missing' : 'is not usable', how })
      return value
    }
    const isThere = (value: string): boolean => value !== ''
    return {
      name,
      issuer: read('ISSUER', 'set it to the address of the issuer, https://…', isIssuer),
      clientId: read('CLIENT_ID', 'set it to the client id that the issuer gave', isThere),
      clientSecret: read('CLIENT_SECRET', 'set it to the client secret that the issuer gave', isThere),
    }
  })
}

/** HTTPS, or an issuer on this machine. */
function isIssuer(value: string): boolean {
  if (!URL.canParse(value)) return false
  const { protocol, hostname } = new URL(value)
  return protocol === 'https:' || (protocol === 'http:' && ['localhost', '127.0.0.1'].includes(hostname))
}
