// An OpenID Connect provider on a free port of this machine, which it prints. Its arguments: the folder with its package,
// and the address and the secret of the client under test.
import { generateKeyPairSync } from "node:crypto";
import { createServer } from "node:http";
import { pathToFileURL } from "node:url";

const [folder, client, secret] = process.argv.slice(2);
const { Provider } = await import(pathToFileURL(`${folder}/node_modules/oidc-provider/lib/index.js`));
const key = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({ format: "jwk" });
const groups = { ada: ["chat", "ops"], bob: ["chat"], eve: [] };

const server = createServer();
server.listen(0, "127.0.0.1", async () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: "dragoman",
        client_secret: secret,
        redirect_uris: [`${client}/oidc/callback`],
        post_logout_redirect_uris: [`${client}/`],
        backchannel_logout_uri: `${client}/oidc/logout`,
        backchannel_logout_session_required: true,
      },
    ],
    jwks: { keys: [{ ...key, kid: "one", use: "sig", alg: "RS256" }] },
    cookies: { keys: ["a key for cookies"] },
    claims: { openid: ["sub"], profile: ["preferred_username", "groups"] },
    findAccount: (_, id) => ({
      accountId: id,
      claims: () => ({ sub: id, preferred_username: id, groups: groups[id] }),
    }),
    features: { backchannelLogout: { enabled: true }, rpInitiatedLogout: { enabled: true } },
    // Its own dispatcher connects to no loopback address.
    fetch: (url, { dispatcher, ...options }) => globalThis.fetch(url, options),
    pkce: { required: () => true },
    ttl: { Session: 600, Grant: 600, Interaction: 600, AccessToken: 600, IdToken: 600 },
  });
  server.on("request", provider.callback());
  console.log(JSON.stringify({ issuer }));
});
