# The directory for others: engine and MCP on every address of the container, behind a token.
#   docker run -e III_TOKEN=… -p 49134:49134 -p 3117:3117 -v directory:/srv IMAGE
# /srv holds skills/, config.yaml and the state. compose.yaml has the same, with the skills of this folder.
FROM python:3.13-slim AS build
WORKDIR /src
COPY requirements.txt pyproject.toml README.md LICENSE ./
COPY src ./src
RUN python -m venv /opt/iii-directory \
 && /opt/iii-directory/bin/pip install --no-cache-dir --require-hashes -r requirements.txt \
 && /opt/iii-directory/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM python:3.13-slim
RUN apt-get update && apt-get install -y --no-install-recommends git && rm -rf /var/lib/apt/lists/* \
 && useradd --create-home --uid 10001 directory && install -d -o directory /srv
COPY --from=build /opt/iii-directory /opt/iii-directory
ENV PATH=/opt/iii-directory/bin:$PATH
USER directory
WORKDIR /srv
VOLUME /srv
EXPOSE 49134 3117
HEALTHCHECK --start-period=15s CMD ["iii-directory", "status"]
ENTRYPOINT ["iii-directory"]
CMD ["up", "--host", "0.0.0.0", "--http-host", "0.0.0.0"]
