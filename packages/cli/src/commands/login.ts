import { type Asked, CannotDo, type Command, type Outside } from '../command.ts'
import {
  type Credentials,
  credentialsFile,
  deleteCredentials,
  readCredentials,
  writeCredentials,
} from '../credentials.ts'
import { connect, given, serviceOptions, shownKey } from '../service.ts'

/** `purser login`: asks the service whose key it is, and keeps it. */
export const login: Command = {
  name: 'login',
  summary: 'Keep an API key for the other commands, once the service has said that it is good.',
  positionals: [],
  options: {
    ...serviceOptions,
    key: {
      value: '<api key>',
      about: 'better typed when asked for, or piped in: other users see what stands in a command',
    },
  },
  notes: [
    'The key is kept in the user’s own settings ($XDG_CONFIG_HOME/purser or ~/.config/purser), readable by nobody else.',
    'Without --base-url the service of the last login is meant.',
  ],
  async run(asked, outside) {
    const credentials = await newCredentials(asked, outside)
    const { purser, environment } = connect(credentials, outside)
    const { id, name } = await purser.organisations.current()
    const file = await writeCredentials(outside.settingsDirectory, credentials)
    const key = shownKey(credentials.apiKey)
    return {
      exitCode: 0,
      lines: [
        `Logged in to ${credentials.baseUrl}: ${name} (${id}), ${environment} environment.`,
        `${key} is kept in ${file}.`,
      ],
      json: { baseUrl: credentials.baseUrl, organisation: { id, name }, environment, key, file },
    }
  },
}

async function newCredentials(asked: Asked, outside: Outside): Promise<Credentials> {
  const { key, baseUrl } = given(asked, outside)
  const address = baseUrl ?? (await lastAddress(outside))
  if (address === undefined) throw new CannotDo('Which service? Give --base-url, such as https://pay.example.com.')
  return { apiKey: key ?? (await outside.readSecret(`API key for ${address}: `)).trim(), baseUrl: address }
}

/** A file that cannot be used any more is no reason not to log in anew. */
async function lastAddress({ settingsDirectory }: Outside): Promise<string | undefined> {
  const kept = await readCredentials(settingsDirectory).catch(() => undefined)
  return kept?.baseUrl
}

/** `purser logout`: forgets the key here. */
export const logout: Command = {
  name: 'logout',
  summary: 'Forget the API key that login kept.',
  positionals: [],
  options: {},
  notes: ['The key itself stays good; revoke it with DELETE /organisations/current/api-keys/{id}.'],
  async run(_asked, { settingsDirectory }) {
    const file = credentialsFile(settingsDirectory)
    const wasKept = await deleteCredentials(settingsDirectory)
    return { exitCode: 0, lines: [wasKept ? `${file} is deleted.` : 'No key was kept.'], json: { file, wasKept } }
  },
}
