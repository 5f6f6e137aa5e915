/** A path of better-auth that may be requested, and what the service does for it. */
export interface SignInPath {
  readonly method: 'GET' | 'POST'
  /** Below `/auth`. A segment that begins with a colon stands for any word. */
  readonly path: string
  /** Signs a person in when it is opened as a page. */
  readonly opens?: true
  /**
   * Starts a sign-in at an issuer, which the body names. better-auth also accepts an `idToken` there, which is refused: anybody who obtained one
   * could sign in with it while it is valid, from any browser.
   */
  readonly issuer?: true
  /** Stores a challenge or a state for a proof that may never follow. */
  readonly begins?: true
  /**
   * An attempt to sign in, which is limited. `mail`: sends e-mail to an address; how many mails an address gets is limited where they are sent
   * (`maySend`). `password`: checks the password of an address. `proof`: checks a passkey or a token.
   */
  readonly attempts?: 'mail' | 'password' | 'proof'
  /** Computes the hash of a password (scrypt), which takes a thread of the process for some dozen milliseconds. */
  readonly hashes?: true
  /** Begins or ends the registration of a passkey. */
  readonly registers?: true
  /** Changes what is stored about the signed-in person. */
  readonly changes?: true
  /** Counts what is stored, so that one person's requests wait for one another. */
  readonly counts?: true
  /** Could remove the person's ways to sign in, or give one to somebody else: needs a fresh sign-in. */
  readonly fresh?: true
  /**
   * Ends what opens an account: sessions, a password, a passkey, an issuer's identity. The witness covers it before the response. `session`: the
   * cookie must have been signed here, but its session may have ended: by a first call that the witness did not cover. `token`: a token in the
   * request proves the person.
   */
  readonly endsBy?: 'session' | 'token'
}

/** The reachable paths; all others return 404. */
const signInPaths: readonly SignInPath[] = [
  { method: 'GET', path: '/link', opens: true },
  { method: 'GET', path: '/callback/:issuer', opens: true },
  { method: 'GET', path: '/reset-password/:token' },
  { method: 'GET', path: '/passkey/generate-register-options', begins: true, registers: true },
  { method: 'GET', path: '/passkey/generate-authenticate-options', begins: true },
  { method: 'GET', path: '/passkey/list-user-passkeys' },
  { method: 'GET', path: '/list-accounts' },
  { method: 'POST', path: '/link' },
  { method: 'POST', path: '/sign-in/email', attempts: 'password', hashes: true },
  { method: 'POST', path: '/sign-in/social', issuer: true, begins: true },
  { method: 'POST', path: '/sign-in/link', attempts: 'mail' },
  { method: 'POST', path: '/sign-out', endsBy: 'session' },
  { method: 'POST', path: '/passkey/verify-registration', registers: true, changes: true, counts: true },
  { method: 'POST', path: '/passkey/verify-authentication', attempts: 'proof' },
  { method: 'POST', path: '/passkey/delete-passkey', changes: true, fresh: true, endsBy: 'session' },
  { method: 'POST', path: '/passkey/update-passkey', changes: true },
  { method: 'POST', path: '/change-password', hashes: true, changes: true, fresh: true, endsBy: 'session' },
  { method: 'POST', path: '/request-password-reset', attempts: 'mail' },
  { method: 'POST', path: '/reset-password', attempts: 'proof', hashes: true, endsBy: 'token' },
  { method: 'POST', path: '/link-social', issuer: true, begins: true, changes: true, fresh: true },
  { method: 'POST', path: '/unlink-account', changes: true, fresh: true, endsBy: 'session' },
  { method: 'POST', path: '/update-user', changes: true },
]

const patterns = signInPaths.map((known) => ({ known, pattern: patternOf(known.path) }))

function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replace(/:\w+/g, '[\\w-]+')}$`)
}

/** Returns the path of a request; undefined if it is not reachable. */
export function signInPathOf(method: string, path: string): SignInPath | undefined {
  return patterns.find(({ known, pattern }) => known.method === method && pattern.test(path))?.known
}
