import { createServer } from 'node:http'
import type { Page } from 'playwright-core'

/** A site of somebody else's on this machine: a blank page at any address. */
export async function startHostileSite(): Promise<{ readonly port: number; stop(): Promise<void> }> {
  const server = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>Hostile</title><body></body>')
  })
  await new Promise<void>((resolve) => server.listen(0, resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the site has no port')
  return {
    port: address.port,
    stop: () => new Promise((resolve) => server.close(() => resolve()).closeAllConnections()),
  }
}

/** What a hostile page aims at. */
export interface Target {
  readonly service: string
  readonly dashboard: string
  readonly organisationId: string
}

/** What of the service a hostile page saw: nothing of it may be there. */
export interface Loot {
  /** Answers that its scripts could read. */
  readonly read: readonly string[]
  /** Frames whose document is the dashboard's. */
  readonly framed: readonly string[]
}

/**
 * Runs every attack that a page has with its visitor's cookies: forms of each type, fetch with and without CORS, beacons, a frame, and a
 * window that it opens.
 */
export async function attack(page: Page, target: Target): Promise<Loot> {
  const read = await page.evaluate(attackWithScripts, target)
  await page.waitForLoadState('networkidle')
  const framed = page
    .frames()
    .map((frame) => frame.url())
    .filter((url) => url.startsWith(target.dashboard))
  await page.evaluate(postTopLevel, target)
  await page.waitForURL(`${target.service}/**`)
  return { read, framed }
}

/** Runs in the page. Returns what it could read. */
async function attackWithScripts({ service, dashboard, organisationId }: Target): Promise<string[]> {
  const read: string[] = []
  const json = '{"name":"Taken over","email":"evil@example.com","role":"admin","token":"x"}'
  const own = { 'x-service-organisation': organisationId, 'x-service-environment': 'test' }
  const attempt = async (name: string, init: RequestInit, path: string): Promise<void> => {
    try {
      const response = await fetch(service + path, { credentials: 'include', ...init })
      const body = await response.text()
      if (body !== '' || response.status > 0) read.push(`${name}: ${response.status} ${body}`)
    } catch {
      // The browser kept the answer from the page.
    }
  }
  const paths = ['/organisations', '/organisations/current/members', '/auth/sign-out', '/auth/change-password']
  for (const path of paths) {
    await attempt('simple', { method: 'POST', mode: 'no-cors', body: json }, path)
    const type = { 'content-type': 'application/json', ...own }
    await attempt('preflighted', { method: 'POST', headers: type, body: json }, path)
    navigator.sendBeacon(service + path, new Blob([json], { type: 'text/plain' }))
    for (const enctype of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data']) {
      const sink = document.createElement('iframe')
      sink.name = `sink-${document.querySelectorAll('iframe').length}`
      const form = document.createElement('form')
      Object.assign(form, { action: service + path, method: 'post', enctype, target: sink.name })
      const input = document.createElement('input')
      Object.assign(input, { name: '{"name":"Taken over","x":"', value: '"}' })
      form.append(input)
      document.body.append(sink, form)
      form.submit()
    }
  }
  await attempt(
    'rename',
    { method: 'PATCH', headers: { 'content-type': 'application/json', ...own }, body: json },
    '/organisations/current',
  )
  for (const path of ['/account', '/account/sessions', '/auth/passkey/list-user-passkeys', '/auth/list-accounts'])
    await attempt('read', {}, path)
  await attempt('read with the organisation', { headers: own }, '/organisations/current')
  const frame = document.createElement('iframe')
  frame.src = `${dashboard}/test/account`
  document.body.append(frame)
  await new Promise((resolve) => frame.addEventListener('load', resolve, { once: true }))
  return read
}

/** Runs in the page: a form that takes its visitor along. */
function postTopLevel({ service }: Target): void {
  const form = document.createElement('form')
  Object.assign(form, { action: `${service}/organisations`, method: 'post', enctype: 'text/plain' })
  const input = document.createElement('input')
  Object.assign(input, { name: '{"name":"Taken over","x":"', value: '"}' })
  form.append(input)
  document.body.append(form)
  form.submit()
}
