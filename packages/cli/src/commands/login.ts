import { type Args, type Command, CommandError, type Io } from '../command.ts'
import {
  type Credentials,
  credentialsFile,
  deleteCredentials,
  readCredentials,
  writeCredentials,
} from '../credentials.ts'
import { connect, given, serviceOptions, shownKey } from '../service.ts'

/** `purser login`: checks a key with the service and stores it. */
export const login: Command = {
  name: 'login',
  summary: 'Store an API key for the other commands, after checking it with the service.',
  positionals: [],
  options: {
    ...serviceOptions,
    key: {
      value: '<api key>',
      about: 'prefer the prompt or a pipe: other users can see command lines',
    },
  },
  notes: [
    'The key is stored in the user’s settings ($XDG_CONFIG_HOME/purser or ~/.config/purser), readable only by this user.',
    'Without --base-url, the service of the last login is used.',
  ],
  async run(args, io) {
    const credentials = await newCredentials(args, io)
    const { purser, environment } = connect(credentials, io)
    const { id, name } = await purser.organisations.current()
    const file = await writeCredentials(io.settingsDirectory, credentials)
    const key = shownKey(credentials.apiKey)
    return {
      exitCode: 0,
      lines: [
        `Logged in to ${credentials.baseUrl}: ${name} (${id}), ${environment} environment.`,
        `${key} is stored in ${file}.`,
      ],
      json: { baseUrl: credentials.baseUrl, organisation: { id, name }, environment, key, file },
    }
  },
}

async function newCredentials(args: Args, io: Io): Promise<Credentials> {
  const { key, baseUrl } = given(args, io)
  const address = baseUrl ?? (await lastAddress(io))
  if (address === undefined)
    throw new CommandError('No service address. Give --base-url, such as https://pay.example.com.')
  return { apiKey: key ?? (await io.readSecret(`API key for ${address}: `)).trim(), baseUrl: address }
}

/**
 * The address of the previous login; undefined if the credentials file cannot be read, which must not prevent a new
 * login.
 */
async function lastAddress({ settingsDirectory }: Io): Promise<string | undefined> {
  const kept = await readCredentials(settingsDirectory).catch(() => undefined)
  return kept?.baseUrl
}

/** `purser logout`: deletes the stored key. */
export const logout: Command = {
  name: 'logout',
  summary: 'Delete the stored API key.',
  positionals: [],
  options: {},
  notes: ['The key stays valid. Revoke it with DELETE /organisations/current/api-keys/{id}.'],
  async run(_args, { settingsDirectory }) {
    const file = credentialsFile(settingsDirectory)
    const wasKept = await deleteCredentials(settingsDirectory)
    return {
      exitCode: 0,
      lines: [wasKept ? `${file} is deleted.` : 'There was no stored key.'],
      json: { file, wasKept },
    }
  },
}
