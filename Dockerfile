# The directory with its embedded engine. Mount a volume at /srv for skills, state and config.yaml.
#   docker run -e III_TOKEN=… -p 49134:49134 -v directory:/srv IMAGE engine --host 0.0.0.0
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
ENTRYPOINT ["iii-directory"]
CMD ["up"]
