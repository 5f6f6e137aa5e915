/** The settings of `npm start` from the environment. */
export interface StartSettings {
  readonly port: number
  readonly dataDir: string
  readonly databaseUrl: string | undefined
  readonly chains: boolean
}

const portDefault = 4100

/** Reads the settings. Returns one sentence about the first that is not usable. An empty one counts as unset. */
export function readStartSettings(
  env: Readonly<Record<string, string | undefined>>,
): StartSettings | { readonly fault: string } {
  const { PORT: port = '', DATA_DIR: dataDir = '', DATABASE_URL: databaseUrl = '', CHAINS: chains = '' } = env
  if (!/^\d{0,5}$/.test(port) || Number(port) > 65_535)
    return { fault: 'PORT is not usable: set it to a number from 0 to 65535.' }
  if (chains !== '' && chains !== 'on' && chains !== 'off')
    return { fault: 'CHAINS is not usable: set it to off, or leave it out.' }
  if (databaseUrl !== '' && !/^postgres(ql)?:\/\//.test(databaseUrl)) {
    return { fault: 'DATABASE_URL is not usable: it must begin with postgres://. Or leave it out.' }
  }
  return {
    port: port === '' ? portDefault : Number(port),
    dataDir: dataDir === '' ? '.purser' : dataDir,
    databaseUrl: databaseUrl === '' ? undefined : databaseUrl,
    chains: chains !== 'off',
  }
}

/** Returns an error's message in one line. Of several at once (one per address that was tried) the first. */
export function sentenceOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return sentenceOf(error.errors[0])
  const message = error instanceof Error ? error.message || error.name : String(error)
  return message.replace(/\s*\n\s*/g, ' ').trim()
}
