import type { Environment } from '@purser/sdk'

export const base = '/dashboard'
const organisationKey = 'purser-organisation'
const environmentKey = 'purser-environment'

/**
 * The URL contains the environment, after `/dashboard`, so that a link always opens the environment that it was copied
 * from. A URL without an environment, such as `upgradeUrl`, opens the environment used last.
 */
export function environmentOf(pathname: string): Environment | undefined {
  return /^\/dashboard\/(test|live)(?:\/|$)/.exec(pathname)?.[1] as Environment | undefined
}

/** The path of the current page in the other environment. */
export function inEnvironment(
  environment: Environment,
  { pathname, search }: Pick<Location, 'pathname' | 'search'>,
): string {
  const rest = pathname.replace(/^\/dashboard(?:\/(?:test|live)(?=\/|$))?/, '')
  return `${base}/${environment}${rest === '/' ? '' : rest}${search}`
}

export function lastEnvironment(): Environment {
  return localStorage.getItem(environmentKey) === 'live' ? 'live' : 'test'
}

export function rememberEnvironment(environment: Environment): void {
  localStorage.setItem(environmentKey, environment)
}

/** The sign-in page, which leads back to the current page. */
export function signInAgain(): string {
  return `${base}/sign-in?to=${encodeURIComponent(location.pathname + location.search)}`
}

/** The organisation that was worked in last. Not a secret: the service checks membership on every request. */
export function lastOrganisation(): string | undefined {
  return localStorage.getItem(organisationKey) ?? undefined
}

export function rememberOrganisation(organisationId: string): void {
  localStorage.setItem(organisationKey, organisationId)
}
