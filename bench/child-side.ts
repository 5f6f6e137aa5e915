import { type Profile, startProfile } from './profile.ts'

/** What a child tells once it serves: text by name. */
export type Ready = Readonly<Record<string, string>>

/**
 * Runs one side of a comparison as a child of the benchmark: tells the parent when it serves, profiles itself when asked,
 * and ends when the parent says so or is gone, so that no measured process can outlive the measurement.
 */
export async function runAsChild(start: () => Promise<{ ready: Ready; stop(): Promise<void> }>): Promise<void> {
  if (process.send === undefined) throw new Error('This is a child of the benchmark; run `npm run bench` instead')
  process.once('disconnect', () => process.exit(1))
  const { ready, stop } = await start()
  let profile: Profile | undefined
  process.on('message', async (message) => {
    if (message === 'profile') profile = await startProfile()
    if (message === 'profile-end') tell('profile', (await profile?.end()) ?? {})
    if (message === 'stop') {
      await stop()
      process.exit(0)
    }
  })
  tell('ready', ready)
}

/** A setting that the parent gave by the environment. */
export function setting(name: string): string {
  const value = process.env[name]
  if (value === undefined) throw new Error(`${name} is not set`)
  return value
}

function tell(kind: string, told: Readonly<Record<string, string | number>>): void {
  process.send?.({ kind, told })
}
