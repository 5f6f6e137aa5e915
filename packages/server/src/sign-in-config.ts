import type { Reader } from './settings.ts'

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

/** Reads how people sign in and adds every fault. */
export function readSignIn(read: Reader): SignInSettings {
  const signUp = read.optional('SIGN_UP', 'open or closed', (value) => ['open', 'closed'].includes(value))
  return { isSignUpOpen: signUp === 'open', issuers: readIssuers(read), smtp: readSmtp(read) }
}

function readSmtp(read: Reader): SignInSettings['smtp'] {
  const [url = '', from = ''] = [read.text('SMTP_URL'), read.text('SMTP_FROM')]
  if (url === '' && from === '') return undefined
  if (!/^smtps?:\/\/./.test(url) || !URL.canParse(url))
    read.refuse('SMTP_URL', 'set it to smtps://user:password@host:465')
  if (!/^[^\s@<>]+@[^\s@<>]+$/.test(from)) read.refuse('SMTP_FROM', 'set it to the sender address of emails')
  return { url, from }
}

/** `OIDC_PROVIDERS=google,okta`, and of each `OIDC_<NAME>_ISSUER`, `OIDC_<NAME>_CLIENT_ID` and `OIDC_<NAME>_CLIENT_SECRET`. */
function readIssuers(read: Reader): SignInSettings['issuers'] {
  const names = read.list('OIDC_PROVIDERS')
  if (names.some((name) => !/^[a-z][a-z0-9-]{0,30}$/.test(name)) || new Set(names).size < names.length)
    read.refuse('OIDC_PROVIDERS', 'list different names in lower case, separated by commas, such as google,okta')
  return names.map((name) => {
    const prefix = `OIDC_${name.toUpperCase().replaceAll('-', '_')}`
    return {
      name,
      issuer: read.required(`${prefix}_ISSUER`, 'the address of the issuer, https://…', isIssuer),
      clientId: read.required(`${prefix}_CLIENT_ID`, 'the client id that the issuer gave'),
      clientSecret: read.required(`${prefix}_CLIENT_SECRET`, 'the client secret that the issuer gave'),
    }
  })
}

/** HTTPS, or an issuer on this machine. */
function isIssuer(value: string): boolean {
  if (!URL.canParse(value)) return false
  const { protocol, hostname } = new URL(value)
  return protocol === 'https:' || (protocol === 'http:' && ['localhost', '127.0.0.1'].includes(hostname))
}
